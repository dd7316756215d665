"""Which of two models is the base model and which the post-trained one, by their names. Imports no torch."""

from __future__ import annotations

import re

from spt.presets import PRESETS, Kind

# Words of a name that say what was done to a model; what is left is the model itself.
_WORDS: dict[str, Kind] = {
    "base": "base", "pt": "base", "pretrained": "base",
    "instruct": "post-trained", "it": "post-trained", "chat": "post-trained", "sft": "post-trained",
    "dpo": "post-trained", "rlhf": "post-trained",
}  # fmt: skip
# What only says how the weights are stored.
_STORED = {"hf", "gguf", "bnb", "4bit", "8bit"}
_QUANTIZED = re.compile(r"([-.](i?q\d\w*|b?f16|fp16))?(\.gguf)?$")
_HUB = {"bundled": "HuggingFaceTB/SmolLM2-135M-Instruct"}


def named(model: str) -> tuple[str, Kind | None]:
    """What two models of a pair share of their names, and the kind that the name (or the preset) says."""
    preset = PRESETS.get(model)
    last = _HUB.get(model, model).rstrip("/\\").replace("\\", "/").split("/")[-1].lower()
    words = re.split(r"[-_\s]+", _QUANTIZED.sub("", last, count=1))
    said = next((_WORDS[word] for word in words if word in _WORDS), None)
    stem = "-".join(word for word in words if word not in _WORDS and word not in _STORED)
    return stem, preset.kind if preset else said


def is_pair(base: str, post: str) -> bool:
    """Whether these are a model and what post-training made of it.

    A name without a word for it goes either way: `X-Base` and `X`, `X` and `X-Instruct`.
    """
    (stem, kind), (other, made) = named(base), named(post)
    return stem == other and kind != "post-trained" and made != "base" and (kind, made) != (None, None)

