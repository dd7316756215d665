"""Where spt keeps its files: models made ready, accepted terms, runs. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path

from spt.spec import UserError


def home() -> Path:
    """The folder of everything spt stores: `SPT_HOME`, or `~/.cache/spt`. Read at each call; it may not exist yet."""
    return Path(os.environ.get("SPT_HOME") or "~/.cache/spt").expanduser()


def make_home() -> Path:
    """`home()`, made if it was not there. Raises UserError where it cannot be a folder."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}): set SPT_HOME to a folder elsewhere.") from error
    return folder


def runs_root() -> Path:
    """The folder of run folders."""
    return home() / "runs"
