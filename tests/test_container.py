"""What a machine without a container engine can hold of image and Space: rules, metadata, a start as its user."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from spt.benchmarks import BENCHMARKS
from spt.presets import PRESETS

ROOT = Path(__file__).parents[1]
UID = 1000


def front_matter() -> dict[str, Any]:
    head = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n")[1]
    return dict(yaml.safe_load(head))


def test_the_dockerfile_keeps_the_rules() -> None:
    found = subprocess.run(["hadolint", str(ROOT / "Dockerfile")], capture_output=True, text=True, env=with_scripts())
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_repository_is_a_space() -> None:
    """Fields and values of the hub's reference of Spaces' configuration."""
    space = front_matter()
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert space["sdk"] == "docker" and f"EXPOSE {space['app_port']}" in dockerfile and "PORT=7860" in dockerfile
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {space["colorFrom"], space["colorTo"]} <= colours and len(space["short_description"]) <= 60
    assert re.fullmatch(r"\d+[mhd]", space["startup_duration_timeout"]) and space["suggested_hardware"] == "t4-small"
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+", name) for name in (*space["models"], *space["datasets"]))
    assert all(name in PRESETS for name in space["models"]), "models that spt offers"
    assert set(space["datasets"]) <= {benchmark.hub.id for benchmark in BENCHMARKS.values() if benchmark.hub}


def test_the_dockerfile_says_what_a_space_needs() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert f"USER {UID}" in lines and any(f"--uid {UID}" in line for line in lines)
    assert "VOLUME /data" in lines and any("SPT_HOME=/data" in line for line in lines)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[tuple[str, Path, Path]]:
    """The image's command, as its user, from a source tree that nobody may write to: its address, SPT_HOME and log."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can start a process as another user, with setpriv")
    python = readable_python()
    source, data = Path("/tmp") / f"spt-source-{os.getpid()}", Path("/tmp") / f"spt-data-{os.getpid()}"
    ignored = shutil.ignore_patterns(".*", "tests", "perf", "__pycache__", "*.log")
    shutil.copytree(ROOT, source, ignore=ignored)
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(source)], check=True)
    data.mkdir()
    os.chown(data, UID, UID)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    dockerfile = (ROOT / "Dockerfile").read_text()
    command = re.findall(r'^CMD \["python", (.*)\]$', dockerfile, re.MULTILINE)[-1]
    arguments = [word.strip(' "') for word in command.split(",")]
    environment = {**with_scripts(), "PORT": str(port), "HOME": str(data), "SPT_HOME": str(data / "spt")}
    process = subprocess.Popen(
        [*as_user(), python, *arguments], cwd=source, env=environment, stderr=subprocess.STDOUT,
        stdout=(tmp_path / "log").open("wb"),
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}", data / "spt", tmp_path / "log"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(source)
        shutil.rmtree(data)


def as_user() -> list[str]:
    return ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]


def readable_python() -> str:
    """A Python of this version that another user may start: root's own often lies in root's folder."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import gradio'], check=True)"
    for python in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        if Path(python).exists():
            command = [*as_user(), python, "-c", code]
            if subprocess.run(command, capture_output=True, cwd="/", env=with_scripts()).returncode == 0:
                return python
    pytest.skip("no Python here that another user may start")


def with_scripts() -> dict[str, str]:
    """The environment, with the scripts and packages of this Python to be found, whichever Python is started."""
    scripts, packages = Path(sys.executable).parent, sysconfig.get_path("purelib")
    return {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": packages}


def test_it_serves_as_an_ordinary_user_from_a_read_only_tree(page: tuple[str, Path, Path]) -> None:
    address, home, log = page
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                assert answer.status == 200
            break
        except OSError:
            assert time.monotonic() < deadline, f"{log.read_text()}: the page did not answer within a minute"
            time.sleep(0.3)
    assert home.is_dir() and home.stat().st_uid == UID
