"""Where spt keeps its files: models made ready, accepted terms, runs. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The folder of everything spt stores: `SPT_HOME`, or `~/.cache/spt`. Read at each call; it may not exist yet."""
    return Path(os.environ.get("SPT_HOME") or "~/.cache/spt").expanduser()


def runs_root() -> Path:
    """The folder of run folders."""
    return home() / "runs"
