"""Load a model to be evaluated: a preset, a hub id, a local folder or a GGUF file.

    loaded = load("bundled")                          # SmolLM2-135M-Instruct, float32 on a CPU
    loaded = load("Qwen/Qwen3-0.6B-Base", revision="main", precision="4bit")

Weights are safetensors or GGUF, never pickles, and code from a model's repository is never run. Whatever the source,
files come first into a local folder (`spt.hub`, `spt.bundled`), and one path loads from there. Everything that can be
wrong with a model is told before its weights are read where possible, and as one sentence (UserError) always.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from spt import bundled, hub, model_files
from spt.chat import end_ids, is_post_trained
from spt.gguf_models import load_gguf
from spt.model_checks import check_memory, read_config, require_all_weights
from spt.model_files import gguf_file, is_model_folder, require_safetensors
from spt.presets import PRESETS
from spt.quiet import quiet
from spt.spec import Precision, UserError, local_path

Report = Callable[[str], None]


@dataclass
class LoadedModel:
    """A frozen model in eval mode, with what the other parts need to know of it."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase  # pads on the left, and always has a pad token
    name: str  # as given; a local path is made absolute
    revision: str | None  # hub: the commit; package preset: its version; local: a fingerprint
    device: torch.device
    precision: str  # "fp32" | "bf16" | "4bit"
    post_trained: bool  # see spt.chat.is_post_trained
    eos_ids: tuple[int, ...]  # every id that ends an answer; the first is the tokenizer's own
    pad_id: int
    parameters: int  # of the checkpoint: 4-bit weights count one by one, tied ones once


def device() -> torch.device:
    """CUDA where there is one, else the CPU."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def resolve_precision(precision: Precision, target: torch.device) -> str:
    """auto = bf16 on CUDA, fp32 on a CPU. Never fp16: its range is too small for activations of Gemma and others."""
    if precision == "auto":
        return "bf16" if target.type == "cuda" else "fp32"
    return precision


def compute_dtype(precision: str, target: torch.device) -> torch.dtype:
    """The type that activations have. 4-bit weights are multiplied in bf16 on CUDA and in fp32 on a CPU."""
    if precision == "4bit":
        return torch.bfloat16 if target.type == "cuda" else torch.float32
    return {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]


def load(
    name: str, revision: str | None = None, precision: Precision = "auto", report: Report = lambda message: None
) -> LoadedModel:
    """Load a model, frozen and in eval mode, on the best device.

    name: preset (`spt.presets`), hub id, folder with config.json, tokenizer and safetensors, or a GGUF file.
    report: is told what happens when it takes time, one line a call.

    Raises UserError: unknown id or revision, no network, not in the cache while offline, gated without token, terms
    not accepted, no safetensors, needs remote code, not a causal language model, weights missing or damaged, too little
    memory or disk.
    """
    model_files.check(name, revision, precision)
    target = device()
    exact = resolve_precision(precision, target)
    with quiet():
        if name in bundled.PACKAGES:
            folder = bundled.fetch(name, report)
            loaded = _load_folder(folder, name, bundled.PACKAGES[name].version, exact, target)
        elif (path := local_path(name)) is not None:
            loaded = _load_path(path, exact, target)
        else:
            folder, commit = hub.fetch(name, revision, lambda folder: _check(folder, name, exact, target), report)
            loaded = _load_folder(folder, name, commit, exact, target)
    return loaded


def _check(folder: Path, name: str, precision: str, target: torch.device) -> None:
    check_memory(read_config(folder, name), precision, target, name)


def _load_path(path: Path, precision: str, target: torch.device) -> LoadedModel:
    """A folder of safetensors, a GGUF file, or a folder with a single GGUF file and no config."""
    if is_model_folder(path):
        weights = sorted(path.glob("*.safetensors"))
        return _load_folder(path, str(path), fingerprint([path / "config.json", *weights]), precision, target)
    file = gguf_file(path, precision)
    model, tokenizer = load_gguf(file)
    moved = nn.Module.to(model, target, compute_dtype(precision, target))
    return _finish(moved, tokenizer, str(path), fingerprint([file]), precision, target)


def fingerprint(files: Sequence[Path]) -> str:
    """Stands for the revision of local weights: a hash of each file's name, size, and first and last MiB.

    Enough to see that a checkpoint was replaced, without reading gigabytes.
    """
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as content:
            digest.update(content.read(2**20))
            content.seek(max(0, size - 2**20))
            digest.update(content.read(2**20))
    return f"local-{digest.hexdigest()[:12]}"


def _load_folder(folder: Path, name: str, revision: str | None, precision: str, target: torch.device) -> LoadedModel:
    """The one path that reads safetensors."""
    config = read_config(folder, name)
    require_safetensors(folder, name)
    check_memory(config, precision, target, name)
    dtype = compute_dtype(precision, target)
    stored_as = getattr(config, "quantization_config", None)
    quantisation = None
    if precision == "4bit":
        if stored_as:
            raise UserError(f"{name} is stored quantised already: choose auto instead of 4bit.")
        # The compute type has to be said: the default makes every multiplication slow.
        quantisation = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype, bnb_4bit_use_double_quant=False
        )
    if not any(any(folder.glob(pattern)) for pattern in ("tokenizer*", "vocab*", "*.model", "tekken.json")):
        raise UserError(f"{name} has no tokenizer: its folder lacks tokenizer.json.")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, ImportError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"The tokenizer of {name} cannot be loaded: {_first_line(error)}") from error
    try:
        read: Any = AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=dtype, quantization_config=quantisation, device_map={"": target},
            use_safetensors=True, trust_remote_code=False, local_files_only=True, output_loading_info=True,
        )
    except torch.OutOfMemoryError:
        raise UserError(f"{name} does not fit into the memory of {target}: try --precision 4bit.") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"The weights of {name} cannot be read, a file may be damaged: {_first_line(error)}") from error
    except (ImportError, RuntimeError, ValueError) as error:
        if "ignore_mismatched_sizes" in str(error):
            raise UserError(f"The weights of {name} do not fit its config.json: they have other shapes.") from None
        # Above all kernels and packages for quantised weights that this machine lacks.
        raise UserError(f"{name} cannot be loaded in {precision} on {target}: {_first_line(error)}") from error
    model, info = read
    require_all_weights(info["missing_keys"], name)
    for module in model.modules():
        # Else a pass without gradient repacks 4-bit weights for AVX-512, for good and with coarser scales: the numbers
        # would depend on what ran before, and layers narrower than 64 cannot be packed at all.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    return _finish(model, tokenizer, name, revision, precision, target)


def _finish(
    model: Any,  # PreTrainedModel, whose types do not tell of the embedding what is asked here
    tokenizer: PreTrainedTokenizerBase,
    name: str,
    revision: str | None,
    precision: str,
    target: torch.device,
) -> LoadedModel:
    model.eval().requires_grad_(False)
    rows = model.get_input_embeddings().weight.shape[0]
    eos_ids = tuple(i for i in end_ids(tokenizer, model.generation_config) if i < rows)
    if not eos_ids:
        raise UserError(f"{name} has no token that ends an answer: its tokenizer names no eos_token.")
    # A pad token that was only ever added to the tokenizer has no row in the embedding.
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id >= rows:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(eos_ids[0])
    tokenizer.padding_side = "left"
    kind = PRESETS[name].kind if name in PRESETS else None
    return LoadedModel(
        model, tokenizer, name, revision, target, precision,
        post_trained=is_post_trained(tokenizer, model.generation_config, name, kind),
        eos_ids=eos_ids, pad_id=tokenizer.pad_token_id, parameters=model.num_parameters(),
    )


def _first_line(error: BaseException) -> str:
    """What a library says, short enough for one sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300].rstrip(".:") + "."
