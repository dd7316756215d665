"""Hub models, against a hub served on this machine: what is downloaded, what is not, and each way it can fail.

The hub library reads its address and cache from the environment when it is imported, so each test asks a fresh process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_hub import COMMIT, serve

Tiny = Callable[[str], Path]

LOAD = """
import sys
from spt import models
from spt.spec import UserError
try:
    loaded = models.load(sys.argv[1], revision=sys.argv[2] or None)
    print(loaded.name, loaded.revision, loaded.parameters)
except UserError as error:
    print("UserError:", error)
"""
# Needs no torch: these fail before a weight is read.
FETCH = """
import sys
from huggingface_hub.utils import disable_progress_bars
from spt import hub
from spt.spec import UserError
disable_progress_bars()
def check(folder):
    print("checked", *sorted(file.name for file in folder.iterdir()))
try:
    print(*hub.fetch(sys.argv[1], sys.argv[2] or None, check))
except UserError as error:
    print("UserError:", error)
"""


def ask(code: str, name: str, address: str, cache: Path, revision: str = "", **environment: str) -> str:
    """Output of one process that fetches or loads a model; stderr must stay empty."""
    settings = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "0"} | environment
    command = [sys.executable, "-c", code, name, revision]
    done = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=120, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.fixture
def repository(tiny: Tiny, tmp_path: Path) -> Path:
    """A tiny model as it lies on the hub: with pickles, code and a second form of the weights beside it."""
    folder = tmp_path / "repository"
    shutil.copytree(tiny("llama"), folder)
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "modeling_odd.py").write_text("raise SystemExit('remote code ran')")
    (folder / "consolidated.safetensors").write_bytes(b"the same weights, in another form")
    (folder / "original").mkdir()
    (folder / "original" / "params.json").write_text("{}")
    return folder


def test_download_then_cache_then_offline(repository: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with serve({"someone/tiny": repository}) as (address, asked):
        assert ask(LOAD, "someone/tiny", address, cache) == f"someone/tiny {COMMIT} 43168"
        fetched = {path.rpartition("/")[2] for path in asked if "/resolve/" in path}
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= fetched
        assert not fetched & {"pytorch_model.bin", "modeling_odd.py", "consolidated.safetensors", "params.json"}
        asked.clear()
        for revision in ("", "main", COMMIT):
            assert ask(FETCH, "someone/tiny", address, cache, revision).endswith(f"{COMMIT} {COMMIT}")
        assert not any("model.safetensors" in path for path in asked)
        asked.clear()
        for revision in ("", "main", COMMIT):
            output = ask(FETCH, "someone/tiny", address, cache, revision, HF_HUB_OFFLINE="1")
            assert output.endswith(f"{COMMIT} {COMMIT}")
        assert not asked
    # The server is gone now: no network, as far as the library can tell.
    assert ask(LOAD, "someone/tiny", address, cache) == f"someone/tiny {COMMIT} 43168"
    assert "the hub cannot be reached" in ask(FETCH, "someone/other", address, cache)


def test_the_model_is_checked_before_its_weights_are_downloaded(repository: Path, tmp_path: Path) -> None:
    with serve({"someone/tiny": repository}) as (address, asked):
        checked, folder = ask(FETCH, "someone/tiny", address, tmp_path / "cache").splitlines()
        assert checked == "checked config.json"
        assert folder.endswith(f"snapshots/{COMMIT} {COMMIT}")
        large = (repository / "config.json").read_text().replace('"vocab_size": 384', '"vocab_size": 3840000000')
        (repository / "config.json").write_text(large)
        asked.clear()
        assert "GB are free" in ask(LOAD, "someone/tiny", address, tmp_path / "cache 2")
        assert not any("model.safetensors" in path for path in asked)


def test_each_refusal_is_one_sentence(repository: Path, tmp_path: Path) -> None:
    pickles = tmp_path / "pickles"
    pickles.mkdir()
    (pickles / "config.json").write_text("{}")
    (pickles / "pytorch_model.bin").write_bytes(b"a pickle")
    models = {"someone/tiny": repository, "gated/tiny": repository, "someone/pickles": pickles}
    cache = tmp_path / "cache"
    with serve(models) as (address, _):
        assert "There is no model 'nobody/nothing'" in ask(FETCH, "nobody/nothing", address, cache)
        assert "has no revision 'v9'" in ask(FETCH, "someone/tiny", address, cache, revision="v9")
        assert "gated: accept its licence" in ask(FETCH, "gated/tiny", address, cache)
        assert COMMIT in ask(FETCH, "gated/tiny", address, cache, HF_TOKEN="let-me-in")
        assert "has no safetensors weights" in ask(FETCH, "someone/pickles", address, cache)
        blocked = tmp_path / "a file"
        blocked.write_text("")
        assert "Cannot store someone/tiny" in ask(FETCH, "someone/tiny", address, blocked / "cache")
        assert "and HF_HUB_OFFLINE is set" in ask(FETCH, "someone/tiny", address, tmp_path, HF_HUB_OFFLINE="1")


CONFIG = FETCH.replace("hub.fetch(sys.argv[1], sys.argv[2] or None, check)", "hub.fetch_config(sys.argv[1], None)")


def test_without_a_network_an_unknown_model_is_said_at_once_and_what_is_waited_for_too(tmp_path: Path) -> None:
    """The library alone would try six times to download the config, which takes 23 seconds."""
    told = FETCH.replace(", check))", ", check, lambda note: print(note, flush=True)))")
    start = time.monotonic()
    for code in (told, CONFIG):
        said = ask(code, "someone/tiny", "http://127.0.0.1:9", tmp_path / "cache").splitlines()
        assert "is not in the cache and the hub cannot be reached" in said[-1]
        assert code == CONFIG or said[0] == "Asking the hub about someone/tiny …"
    assert time.monotonic() - start < 12, "two processes, a second of imports each"


def test_a_download_that_would_fill_the_disk_is_not_begun(tmp_path: Path) -> None:
    """The weights' size comes from the hub's listing: a sparse file has any size and takes no disk."""
    folder = tmp_path / "vast"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(1 << 42)
    with serve({"someone/vast": folder}) as (address, asked):
        assert "make room or set HF_HOME" in ask(FETCH, "someone/vast", address, tmp_path / "cache")
        assert not any("model.safetensors" in path for path in asked)
