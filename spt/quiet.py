"""Silence for the model libraries while they load: their warnings and bars would break into spt's own output."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import transformers
from huggingface_hub import utils as hub


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, warnings or log lines below an error from transformers and the hub library inside the block."""
    logs = transformers.logging
    level, bars = logs.get_verbosity(), logs.is_progress_bar_enabled()
    hub_level, hub_bars_off = hub.logging.get_verbosity(), hub.are_progress_bars_disabled()
    quantising = logging.getLogger("bitsandbytes")  # it tells at import which faster kernels it does without
    quantising_level = quantising.level
    quantising.setLevel(logging.ERROR)
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    hub.logging.set_verbosity_error()
    try:
        # A value in HF_HUB_DISABLE_PROGRESS_BARS has priority over these two calls.
        hub.disable_progress_bars()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        quantising.setLevel(quantising_level)
        logs.set_verbosity(level)
        hub.logging.set_verbosity(hub_level)
        if bars:
            logs.enable_progress_bar()
        if not hub_bars_off:
            hub.enable_progress_bars()
