"""A tiny llama as a GGUF file, written the way llama.cpp's converter does."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

from tests.tiny import BOS, EOS, PAD, SPECIAL, settings


def write_gguf(model: Path, file: Path, cut: str | None = "smollm") -> Path:
    """Write the tiny llama in the folder `model` as a GGUF file whose metadata asks for the pre-tokenizer `cut`."""
    config = settings("llama")
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])

    backend = json.loads((model / "tokenizer.json").read_text())["model"]
    tokens = sorted(backend["vocab"], key=backend["vocab"].__getitem__)
    writer.add_tokenizer_model("gpt2")
    if cut is not None:
        writer.add_tokenizer_pre(cut)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])  # 3 = control, 1 = normal
    writer.add_token_merges([" ".join(merge) for merge in backend["merges"]])
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_pad_token_id(PAD)
    writer.add_add_bos_token(True)

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, tensor in load_file(model / "model.safetensors").items():
        if name.endswith("q_proj.weight"):
            tensor = _interleave(tensor, heads)
        elif name.endswith("k_proj.weight"):
            tensor = _interleave(tensor, kv_heads)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _interleave(weight: np.ndarray, heads: int) -> np.ndarray:
    """The order of rows that llama.cpp's rotary embedding expects."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
