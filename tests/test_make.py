"""What `make app` says before it does what takes minutes. Nothing is installed: make only tells its commands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_make_app_says_what_it_does_before_each_step_that_takes_long(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    done = subprocess.run(["make", "-n", "app"], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    for slow in ("-m venv", "-m spt.bundled", "app.py"):
        place = next(i for i, line in enumerate(lines) if slow in line)
        assert lines[place - 1].startswith("echo ") and lines[place - 1].endswith('..."')
