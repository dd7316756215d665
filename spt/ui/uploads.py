"""Files that visitors give, and what a visitor from elsewhere may name: uploads and benchmarks, no paths of the server.

A file is kept as `SPT_HOME/uploads/<hash>-<name>`: the same content has the same path, so the same run.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from spt.benchmarks import default_data_dir
from spt.benchmarks.own_file import MAX_BYTES
from spt.files import disk_errors
from spt.home import home, make_home
from spt.spec import UserError, local_path

SUFFIXES = (".jsonl", ".csv")


def folder() -> Path:
    return home().resolve() / "uploads"


def keep(uploaded: Path, check: Callable[[Path], None] = lambda path: None) -> Path:
    """Move an uploaded file to where it stays.

    Raises UserError, and deletes the file, where it is no JSONL or CSV, too large, or `check` refuses it.
    """
    try:
        _require_kind(uploaded)
        check(uploaded)
    except UserError:
        uploaded.unlink(missing_ok=True)
        raise
    name = re.sub(r"[^\w.-]+", "-", uploaded.name)[-80:].lstrip(".-") or "file"
    with uploaded.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    make_home()
    with disk_errors(folder()):
        folder().mkdir(exist_ok=True)
        kept = folder() / f"{digest}-{name}"
        temporary = kept.with_name(f".{kept.name}.tmp")
        shutil.move(uploaded, temporary)  # copies where the temporary folder is on another disk
        os.replace(temporary, kept)
    return kept


def _require_kind(uploaded: Path) -> None:
    if uploaded.suffix.lower() not in SUFFIXES:
        raise UserError(f"{uploaded.name} is no .jsonl or .csv file: save the questions as one of these.")
    size = uploaded.stat().st_size
    if size > MAX_BYTES:
        most = f"{MAX_BYTES / 1e6:.0f} MB is the most"
        raise UserError(f"{uploaded.name} has {size / 1e6:,.0f} MB, and {most}: give a part of it.")


def is_upload(benchmark: str) -> bool:
    """Whether a benchmark is a file that was uploaded here."""
    return Path(benchmark).parent == folder()


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` is reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def no_paths(settings: Mapping[str, Any]) -> None:
    """For a page that is reached from elsewhere: raises UserError where a setting names a place on the server."""
    model, benchmark = str(settings["model"]), str(settings["benchmark"])
    if model.startswith(("/", "~", ".")) or local_path(model) is not None:
        raise UserError("This page is reached from elsewhere and reads no paths of its server: give a hub id.")
    path = benchmark.rpartition(":")[2]
    if path.lower().endswith((*SUFFIXES, ".yaml", ".yml")) and not is_upload(benchmark):
        raise UserError("This page is reached from elsewhere and reads no paths of its server: upload the file.")
    if settings["data_dir"] not in (None, "", default_data_dir()):
        raise UserError("This page is reached from elsewhere: its folder of data sets is set by SPT_DATA_DIR alone.")
