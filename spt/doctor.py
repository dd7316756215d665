"""What this machine has for spt: `python -m spt doctor` shows it. Nothing is downloaded and nothing is written."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from spt.home import home
from spt.memory import free_ram

PACKAGES = (
    "torch", "transformers", "peft", "accelerate", "datasets", "bitsandbytes", "gguf", "huggingface_hub", "gradio",
    "plotly",
)  # fmt: skip


def report() -> dict[str, Any]:
    """Facts by group, ready to be shown or written as JSON. A missing package has the version None.

    `hub` is "reachable", "offline mode" or the reason it cannot be reached; the token itself is never told.
    """
    memory = psutil.virtual_memory()
    root = home()
    existing = next(folder for folder in [root, *root.parents] if folder.exists())
    disk = shutil.disk_usage(existing)
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": _cores(),
        "devices": _devices(),
        "memory": {"total_gb": _gb(memory.total), "free_gb": _gb(free_ram())},
        "disk": {"home": str(root), "free_gb": _gb(disk.free), "writable": os.access(existing, os.W_OK)},
        "models": _models(),
        "hub": _hub(),
        "token": _has_token(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _gb(size: float) -> float:
    return round(size / 1e9, 1)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    """Cores this process may use, which in a container or a batch job can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _devices() -> list[dict[str, Any]]:
    """The devices models can run on, best first; torch is imported only for this."""
    import torch

    devices: list[dict[str, Any]] = []
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        name = torch.cuda.get_device_name(index)
        devices.append({"device": f"cuda:{index}", "name": name, "total_gb": _gb(total), "free_gb": _gb(free)})
    processor = platform.processor() or platform.machine()
    devices.append({"device": "cpu", "name": processor, "threads": torch.get_num_threads()})
    return devices


def _models() -> dict[str, str]:
    """State of the models that come as packages."""
    from spt.bundled import PACKAGES, cached
    from spt.presets import terms_accepted

    state = {}
    for name, package in PACKAGES.items():
        if cached(name):
            state[name] = f"ready in {package.folder}"
        elif terms_accepted(name):
            state[name] = f"not fetched yet ({package.download_mb} MB)"
        else:
            state[name] = "terms not accepted yet"
    return state


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None


def _hub() -> str:
    """One short question to the hub, answered within five seconds."""
    import httpx2
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.is_offline_mode():
        return "offline mode (HF_HUB_OFFLINE is set)"
    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except httpx2.HTTPError as error:
        return f"not reachable: {error or type(error).__name__}"
    return "reachable"
