"""Models with a name in spt: what the page and the command line offer. Imports no torch.

`bundled` and `gemma-3-270m` come as Python packages and need no model hub (`spt.bundled`); the others are hub ids,
offered because they are small enough to try on a laptop. Any other hub id or local folder works as well
(`spt.models.load`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spt.home import home
from spt.spec import UserError

Kind = Literal["base", "post-trained"]


@dataclass(frozen=True)
class Preset:
    name: str  # what `--model` takes
    title: str
    kind: Kind
    parameters: int  # tied embeddings counted once
    licence: str
    source: str  # "package": a Python package; "hub": downloaded by its id
    gated: bool = False  # the hub asks for an accepted licence and a token
    terms: str = ""  # shown, and to be accepted, before the first use

    @property
    def terms_file(self) -> Path:
        """The file whose presence means that the terms were accepted."""
        return home() / "terms" / f"{self.name}.txt"


GEMMA_TERMS = (
    "Gemma is provided under and subject to the Gemma Terms of Use found at https://ai.google.dev/gemma/terms, "
    "with the Prohibited Use Policy at https://ai.google.dev/gemma/prohibited_use_policy. "
    "These weights (google/gemma-3-270m, base, GGUF Q4_K_M) were packed by a third party, not by Google."
)

SMOL, QWEN, OLMO = "HuggingFaceTB/SmolLM2", "Qwen/Qwen", "allenai/OLMo-2-0425-1B"
APACHE, LLAMA = "Apache-2.0", "Llama 3.2 Community License"
BASE: Kind = "base"
POST: Kind = "post-trained"

_ALL = (
    Preset("bundled", "SmolLM2 135M Instruct (bundled)", POST, 134_515_008, APACHE, "package"),
    Preset("gemma-3-270m", "Gemma 3 270M", BASE, 268_098_176, "Gemma Terms of Use", "package", terms=GEMMA_TERMS),
    Preset(f"{SMOL}-135M", "SmolLM2 135M", BASE, 134_515_008, APACHE, "hub"),
    Preset(f"{SMOL}-360M", "SmolLM2 360M", BASE, 361_821_120, APACHE, "hub"),
    Preset(f"{SMOL}-360M-Instruct", "SmolLM2 360M Instruct", POST, 361_821_120, APACHE, "hub"),
    Preset(f"{QWEN}2.5-0.5B", "Qwen2.5 0.5B", BASE, 494_032_768, APACHE, "hub"),
    Preset(f"{QWEN}2.5-0.5B-Instruct", "Qwen2.5 0.5B Instruct", POST, 494_032_768, APACHE, "hub"),
    Preset(f"{QWEN}3-0.6B-Base", "Qwen3 0.6B Base", BASE, 596_049_920, APACHE, "hub"),
    Preset(f"{QWEN}3-0.6B", "Qwen3 0.6B", POST, 596_049_920, APACHE, "hub"),
    Preset(OLMO, "OLMo 2 1B", BASE, 1_484_916_736, APACHE, "hub"),
    Preset(f"{OLMO}-Instruct", "OLMo 2 1B Instruct", POST, 1_484_916_736, APACHE, "hub"),
    Preset("meta-llama/Llama-3.2-1B", "Llama 3.2 1B", BASE, 1_235_814_400, LLAMA, "hub", gated=True),
    Preset("meta-llama/Llama-3.2-1B-Instruct", "Llama 3.2 1B Instruct", POST, 1_235_814_400, LLAMA, "hub", gated=True),
)
PRESETS: dict[str, Preset] = {preset.name: preset for preset in _ALL}


def model_title(model: str) -> str:
    """The preset's title, or the last part of a hub id or path."""
    return PRESETS[model].title if model in PRESETS else model.rstrip("/\\").replace("\\", "/").split("/")[-1] or model


def accept_terms(name: str) -> None:
    """Note that the user accepts the terms of a preset. Raises UserError for a name that is no preset."""
    if name not in PRESETS:
        raise UserError(f"There are no terms to accept for {name!r}: it is none of {', '.join(PRESETS)}.")
    preset = PRESETS[name]
    if not preset.terms:
        return
    try:
        preset.terms_file.parent.mkdir(parents=True, exist_ok=True)
        preset.terms_file.write_text(f"{preset.terms}\n\nAccepted {time.strftime('%Y-%m-%d %H:%M:%S %z')}\n")
    except OSError as error:
        raise UserError(f"Cannot note the accepted terms in {preset.terms_file}: {error.strerror}.") from None


def terms_accepted(name: str) -> bool:
    """True if a model may be used now: it has no terms to accept here, or they were accepted."""
    preset = PRESETS.get(name)
    return preset is None or not preset.terms or preset.terms_file.exists()


def require_terms(name: str) -> None:
    """Raises UserError, with where to read the terms and how to accept them, unless `terms_accepted(name)`."""
    if not terms_accepted(name):
        preset = PRESETS[name]
        raise UserError(
            f"{preset.title} comes under the {preset.licence} (https://ai.google.dev/gemma/terms): read them, then "
            f"accept with --accept-terms on the command line or on the page; it is noted in {preset.terms_file}."
        )
