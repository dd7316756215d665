"""How `python app.py` ends where it cannot serve: one sentence, exit status 2. Nothing is served here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def ended(*words: str, **changes: str) -> tuple[int, str]:
    """Exit status and stderr of the app, or of another module, in a changed environment."""
    command = [sys.executable, *(words or ("app.py",))]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **changes}, capture_output=True, text=True, timeout=60, check=False
    )
    return ran.returncode, ran.stderr


@pytest.mark.parametrize("port", ["99999", "0", "-1"])
def test_an_impossible_port_is_one_sentence(port: str) -> None:
    assert ended(PORT=port) == (2, f"Port {port} is not possible: choose one from 1 to 65535, PORT=7861.\n")


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_home_that_cannot_be_is_one_sentence(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, err = ended(SPT_HOME=str(tmp_path / place))
    assert status == 2 and "set SPT_HOME to a folder elsewhere" in err and err.count("\n") == 1
    status, err = ended("-m", "spt.worker", SPT_HOME=str(tmp_path / place))
    assert status == 1 and "set SPT_HOME to a folder elsewhere" in err and "Traceback" not in err
