"""What a result says of the machine and the software it was made with."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import torch

PACKAGES = ("torch", "transformers", "peft", "bitsandbytes")


def device_name(device: torch.device) -> str:
    """What a person calls the device."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def reset_peak_memory() -> None:
    """Begin to measure anew: a worker makes many runs in one process.

    Where the system does not allow it (macOS, some containers), the peak stays that of the process.
    """
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):  # a figure in a table is no reason to end a run
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets the peak resident set size


def peak_memory_mb(device: torch.device) -> float:
    """Peak of the GPU's allocated memory, or of this process's resident memory on a CPU, in MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS and in KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def versions() -> dict[str, str]:
    """Versions of what decides the numbers."""
    return {"python": sys.version.split()[0]} | {package: version(package) for package in PACKAGES}
