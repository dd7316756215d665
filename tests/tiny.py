"""Tiny random models of many architectures, each made in about a second: config, weights, and a tokenizer trained here.

    folder = make("gemma3_text", Path("/tmp/tiny"))     # config.json, model.safetensors, tokenizer.json ...

They know nothing, but their weights are wide enough that greedy answers vary and depend on every token of the input,
which is what tests of padding, caching and prompts need. (Much wider ones are chaotic: rounding alone changes answers.)
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from spt.quiet import quiet

ARCHITECTURES = (
    "llama", "qwen2", "qwen3", "gemma2", "gemma3_text", "gemma3n_text", "olmo2", "mistral", "gpt_neox", "gpt2", "phi3",
    "mamba2",
)  # fmt: skip
VOCABULARY = 384
SPECIAL = ["<pad>", "<bos>", "<eos>", "<turn>", "<end>"]  # ids 0 to 4
PAD, BOS, EOS, TURN, END = range(5)
WINDOW = 8  # of sliding attention: shorter than the prompts in the tests

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<turn>{{ m.role }}\n{{ m.content }}<end>\n{% endfor %}"
    "{% if add_generation_prompt %}<turn>assistant\n{% endif %}"
)
# What the tokenizer learns its merges from; byte-level, so it can write anything.
CORPUS = [
    "Question: What is the capital of France?\nAnswer: #### Paris",
    "Question: Which of these is the capital of Japan?\nA. Kyoto\nB. Tokyo\nC. Osaka\nD. Nara\nAnswer: B. Tokyo",
    "Natalia sold 48/2 = <<48/2=24>>24 clips in May. In all she sold 48+24 = <<48+24=72>>72 clips.\n#### 72",
    "The answer is a short phrase, a number or an option that is copied with its letter.",
]


@cache
def tokenizer_backend() -> Tokenizer:
    """Byte-level BPE with `VOCABULARY` tokens that writes <bos> in front of a text, as Llama's and Gemma's do."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS * 4, trainer)
    assert backend.get_vocab_size() == VOCABULARY
    backend.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", BOS)]
    )
    return backend


def make(architecture: str, folder: Path, seed: int = 0, chat_template: bool = False, **changes: Any) -> Path:
    """Save a random model of an architecture, with its tokenizer, in `folder`; `changes` go into its config."""
    config = AutoConfig.for_model(architecture, **{**settings(architecture), **changes})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config)
    with quiet():
        model.save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer_backend(), bos_token="<bos>", eos_token="<eos>", pad_token="<pad>",
        additional_special_tokens=["<turn>", "<end>"], model_max_length=512,
    )  # fmt: skip
    if chat_template:
        tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder


def settings(architecture: str) -> dict[str, Any]:
    """The config of a tiny model."""
    ids: dict[str, Any] = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "vocab_size": VOCABULARY}
    if architecture == "gpt2":
        return {**ids, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512, "initializer_range": 0.25}
    if architecture == "mamba2":
        return {
            **ids, "hidden_size": 32, "num_hidden_layers": 2, "expand": 2, "num_heads": 8, "head_dim": 8,
            "state_size": 16, "n_groups": 2, "chunk_size": 8, "conv_kernel": 4, "initializer_range": 0.25,
            "tie_word_embeddings": False,
        }  # fmt: skip
    common = {
        **ids, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512, "initializer_range": 0.25,
    }  # fmt: skip
    sliding = {"sliding_window": WINDOW, "num_hidden_layers": 4}
    # Tied to embeddings this wide, and scaled by Gemma, the output would only repeat the last token.
    alternating = {
        **sliding, "layer_types": ["sliding_attention", "full_attention"] * 2, "query_pre_attn_scalar": 8,
        "tie_word_embeddings": False,
    }  # fmt: skip
    own: dict[str, dict[str, Any]] = {
        "gemma2": alternating,
        "gemma3_text": alternating,
        "gemma3n_text": {
            **alternating, "vocab_size_per_layer_input": VOCABULARY, "hidden_size_per_layer_input": 8, "laurel_rank": 8,
            "num_kv_shared_layers": 0, "altup_num_inputs": 2, "activation_sparsity_pattern": [0.0] * 4,
            "intermediate_size": [64] * 4,
        },
        "mistral": sliding,
        "phi3": sliding,
        "gpt_neox": {"num_key_value_heads": None, "rotary_pct": 0.5},
    }  # fmt: skip
    return {**common, **own.get(architecture, {})}
