"""Shared fixtures: tiny models, and where spt keeps its files.

Every test has an empty SPT_HOME of its own; only those that ask for `bundled_home` use the user's cache, so that the
bundled model is made once on a machine and not once a test run.
"""

# ruff: noqa: E402  (the environment comes before the imports)

from __future__ import annotations

import os

# Before torch and the hub library are imported: they read these once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["COLUMNS"] = "200"  # of tables on the command line: paths of the tests are long, and must not be broken
USERS_HOME = os.environ.get("SPT_HOME")

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spt.home import home

if TYPE_CHECKING:
    from spt.models import LoadedModel


@pytest.fixture(autouse=True)
def spt_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty SPT_HOME."""
    folder = tmp_path / "spt-home"
    monkeypatch.setenv("SPT_HOME", str(folder))
    return folder


@pytest.fixture
def bundled_home(spt_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own SPT_HOME, with the bundled model in it: a test that takes it may read there, and not write."""
    from spt import bundled

    if USERS_HOME is None:
        monkeypatch.delenv("SPT_HOME")
    else:
        monkeypatch.setenv("SPT_HOME", USERS_HOME)
    bundled.fetch("bundled")
    return home()


@pytest.fixture
def bundled(bundled_home: Path) -> LoadedModel:
    """The bundled model, loaded anew (in some tenths of a second), so a test may change it."""
    from spt import models

    return models.load("bundled")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`tiny(architecture)`: the folder of a tiny random model, made once a session. Copy it before changing it."""
    from tests.tiny import make

    folders: dict[str, Path] = {}

    def get(architecture: str) -> Path:
        if architecture not in folders:
            folders[architecture] = make(architecture, tmp_path_factory.mktemp(architecture))
        return folders[architecture]

    return get
