"""What can be known of a model before its weights are read: whether it can be loaded, and how much memory it takes."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection
from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.pytorch_utils import Conv1D

from spt.memory import free_ram
from spt.spec import UserError

HEADROOM = 512 << 20  # bytes for the activations of a batch and the libraries' buffers
# 4-bit weights plus one float32 scale for every 64 of them.
NF4_BYTES = 0.5 + 4 / 64


def read_config(folder: Path, name: str) -> PreTrainedConfig:
    """The config of a causal language model. Raises UserError for anything else, and for models that need own code."""
    file = folder / "config.json"
    try:
        raw = json.loads(file.read_text())
        kind = raw["model_type"]
    except FileNotFoundError:
        raise UserError(f"{name} has no config.json: it is not a model for transformers.") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"The config.json of {name} is damaged: it is no JSON object with a model_type.") from None
    if kind not in CONFIG_MAPPING_NAMES:
        if "auto_map" in raw:
            raise UserError(f"{name} needs remote code, which spt never runs: choose a model that transformers knows.")
        raise UserError(f"{name} is of the type {kind!r}, which this version of transformers does not know.")
    architectures = raw.get("architectures") or []
    ends = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or raw.get("is_encoder_decoder") or (
        architectures and not any(architecture.endswith(ends) for architecture in architectures)
    ):
        what = architectures[0] if architectures else kind
        raise UserError(f"{name} is not a causal language model ({what}): it cannot continue a text.")
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # validation of a config raises errors of many kinds
        reason = str(error).strip().splitlines()[-1].strip()
        raise UserError(f"The config.json of {name} is not valid: {reason}") from error


def require_all_weights(missing: Collection[str], name: str) -> None:
    """Raises UserError if the files lack weights of the model: they would be left random, without a word."""
    if missing:
        first, *others = sorted(missing)
        more = f" and {len(others)} more" if others else ""
        raise UserError(f"{name} is not a whole causal language model: its files have no {first}{more}.")


def skeleton(config: PreTrainedConfig, precision: str, cuda: bool) -> PreTrainedModel:
    """The model on torch's meta device: shapes and types as they will be computed with, and no data."""
    wide = torch.bfloat16 if precision == "bf16" or (precision == "4bit" and cuda) else torch.float32
    bare = copy.deepcopy(config)
    if getattr(bare, "quantization_config", None):
        del bare.quantization_config
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(bare, dtype=wide, trust_remote_code=False).eval().requires_grad_(False)


def weight_bytes(model: PreTrainedModel, bits: float | None) -> int:
    """Bytes of a model's parameters, tied ones once. `bits`: of each weight of its linear layers; None = as they are.

    Whoever quantises leaves embeddings, norms and the head as they are.
    """
    total = sum(parameter.nbytes for parameter in model.parameters())
    if bits is not None:
        head = model.get_output_embeddings()
        for module in model.modules():
            if isinstance(module, nn.Linear | Conv1D) and module is not head:
                total += int(module.weight.numel() * bits / 8) - module.weight.nbytes
    return total


def estimate_memory(config: PreTrainedConfig, precision: str, cuda: bool = False) -> int:
    """Bytes that a model's weights take, from its config alone."""
    return weight_bytes(skeleton(config, precision, cuda), 8 * NF4_BYTES if precision == "4bit" else None)


def available_memory(target: torch.device) -> int:
    """Free bytes on a device."""
    return torch.cuda.mem_get_info(target)[0] if target.type == "cuda" else free_ram()


def check_memory(config: PreTrainedConfig, precision: str, target: torch.device, name: str) -> None:
    """Raises UserError if the weights, and some room to work, do not fit into the free memory of the device."""
    if getattr(config, "quantization_config", None):
        return  # stored in a form whose size the config does not tell
    needed = estimate_memory(config, precision, target.type == "cuda") + HEADROOM
    free = available_memory(target)
    if needed > free:
        smaller = "a smaller model" if precision == "4bit" else "--precision 4bit or a smaller model"
        sizes = f"{needed / 1e9:.1f} GB in {precision} and {free / 1e9:.1f} GB are free on {target}"
        raise UserError(f"{name} needs about {sizes}: try {smaller}.")
