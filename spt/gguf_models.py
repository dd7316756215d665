"""GGUF files as ordinary models: weights dequantised to float32, tokenizer repaired.

transformers rebuilds the tokenizer from the file's metadata, and for some files loses how text is cut before the merges
apply: "2024" would become one token where the model has only ever seen "2", "0", "2", "4". The file says which cut it
wants (`tokenizer.ggml.pre`), so the ones known here are put back and a file that asks for an unknown one is refused.
"""

from __future__ import annotations

import io
import struct
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS
from transformers.integrations.gguf.reader import read_gguf_metadata

from spt.model_checks import check_memory, require_all_weights
from spt.spec import UserError

# Names as in llama.cpp. One digit a token, then GPT-2's cut:
DIGITS_ALONE = {"smollm", "starcoder", "refact", "command-r", "codeshell"}
# GPT-2's cut, which transformers uses where it knows no other:
GPT2_LIKE = {"gpt-2", "phi-2", "olmo", "mpt", "jais"}


def load_gguf(file: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model in float32, on the CPU, and tokenizer of a GGUF file. Raises UserError for a file that cannot be used."""
    try:
        metadata, _ = read_gguf_metadata(str(file))
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise UserError(f"{file} cannot be read as a GGUF file, it may be cut short: {error}.") from None
    cut = metadata.get("tokenizer.ggml.pre")
    byte_level = metadata.get("tokenizer.ggml.model") == "gpt2"
    if byte_level and cut not in GGUF_PRE_TOKENIZER_SPLITS and cut not in DIGITS_ALONE | GPT2_LIKE:
        raise UserError(f"{file} cuts text by {cut!r}, which is not known here: use the model's safetensors instead.")

    source: dict[str, Any] = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    try:
        with redirect_stderr(io.StringIO()):  # a progress bar that no setting of transformers turns off
            check_memory(AutoConfig.from_pretrained(**source), "fp32", torch.device("cpu"), str(file))
            tokenizer = AutoTokenizer.from_pretrained(**source)
            read: Any = AutoModelForCausalLM.from_pretrained(
                **source, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32, output_loading_info=True
            )
    except (ValueError, KeyError) as error:  # also an architecture that transformers cannot build from GGUF
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(f"{file} cannot be read, it may be cut short or of a kind not known here: {reason}.") from error
    model, info = read
    require_all_weights(info["missing_keys"], str(file))
    if byte_level and cut in DIGITS_ALONE:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    return model, tokenizer
