"""What an out-of-memory error looks like, and what is done before the work is tried again in halves. Imports no torch.

The only place that knows: tuning (`spt.tuning`) and answering (`spt.evaluation`) halve their work on such an error,
and the runner makes one sentence of what is left (`spt.runner`).
"""

from __future__ import annotations

import gc
import sys

# CUDA's allocator raises OutOfMemoryError; these are what a CPU's allocator and the libraries on a GPU say instead.
_SAID = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDA error: out of memory",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the device, or the machine, had no memory left for what was asked."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's, by name
        return True
    return isinstance(error, RuntimeError) and any(said in str(error) for said in _SAID)


def release() -> None:
    """Give back what the failed attempt held. To be called outside the `except` block: its traceback holds tensors."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
