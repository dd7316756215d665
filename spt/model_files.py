"""What can be said of a model from its name and its files alone, before torch is there. Asks no network.

`check` is asked twice: by `spt.preflight`, so that a user hears at once, and by `spt.models.load`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from spt.bundled import PACKAGES
from spt.presets import PRESETS, require_terms
from spt.spec import Precision, UserError, local_path

_HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def check(name: str, revision: str | None, precision: Precision) -> None:
    """Raises UserError: terms not accepted, a revision of what has none, no such folder or file, no weights in it."""
    if name in PRESETS:
        require_terms(name)
    path = local_path(name)
    if revision is not None and (path is not None or name in PACKAGES):
        what = "is a local path" if path is not None else f"is pinned to {PACKAGES[name].version}"
        raise UserError(f"--revision is for hub models; {name} {what}.")
    if path is None:
        if not _HUB_ID.fullmatch(name) or name.endswith(".gguf"):
            raise no_model(name)
    elif is_model_folder(path):
        require_safetensors(path, str(path))
    else:
        gguf_file(path, precision)


def no_model(name: str) -> UserError:
    """For a name that is nothing here and cannot be, or is not, anything on the hub."""
    presets = ", ".join(preset for preset in PRESETS if "/" not in preset)
    return UserError(
        f"There is no model {name!r}: no preset ({presets}), no local path, no hub id (private: HF_TOKEN=)."
    )


def is_model_folder(path: Path) -> bool:
    """Whether a local path is a folder with a config, and so of safetensors; else it has to do with GGUF."""
    return path.is_dir() and (path / "config.json").exists()


def gguf_file(path: Path, precision: str) -> Path:
    """The GGUF file that a path is, or the single one in it. Raises UserError for other files and folders."""
    files = sorted(path.glob("*.gguf")) if path.is_dir() else [path]
    if path.is_dir() and len(files) != 1:
        what = f"{len(files)} GGUF files: name one of them" if files else "neither a config.json nor a GGUF file in it"
        raise UserError(f"{path} is not a model folder: it has {what}.")
    if files[0].suffix != ".gguf":
        raise UserError(f"{path} is not a model: give a folder with config.json and safetensors, or a .gguf file.")
    if precision == "4bit":
        raise UserError(f"{files[0]} is dequantised when it is loaded: choose auto, fp32 or bf16 instead of 4bit.")
    return files[0]


def require_safetensors(folder: Path, name: str) -> None:
    """Raises UserError unless the folder has all the safetensors its index names, or the single file."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").exists():
        return
    if not index.exists():
        pickles = any(folder.glob("*.bin")) or any(folder.glob("*.pt*"))
        why = "only pickled weights, which can run code when they are opened" if pickles else "no model.safetensors"
        raise UserError(f"{name} has {why}: spt loads safetensors or GGUF.")
    try:
        shards = set(json.loads(index.read_text())["weight_map"].values())
    except (ValueError, KeyError, AttributeError):
        raise UserError(f"The weight index of {name} is damaged: {index}.") from None
    missing = sorted(shard for shard in shards if not (folder / shard).exists())
    if missing:
        raise UserError(f"{name} is not complete: {len(missing)} of its weight files are missing ({missing[0]}).")
