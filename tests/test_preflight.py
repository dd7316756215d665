"""What is refused before torch is imported and before the device is asked for, by preflight and by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from spt.preflight import preflight
from spt.spec import RunSpec, UserError

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "transformers", "datasets", "huggingface_hub", "pyarrow")


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Models and questions that are wrong in one way each."""
    for name in ("empty", "pickles", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "pickles" / "config.json").write_text("{}")
    (tmp_path / "pickles" / "pytorch_model.bin").write_bytes(b"a pickle")
    for name in ("two/a.gguf", "two/b.gguf", "a.txt", "a.gguf"):
        (tmp_path / name).write_bytes(b"")
    rows = [{"question": f"Q{i}", "answer": "a"} for i in range(8)]
    (tmp_path / "few.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "torn.jsonl").write_text('{"question": "Q"')
    return tmp_path


WRONG = [
    ({"benchmark": "{}/none.csv"}, "There is no file"),
    ({"benchmark": "{}/torn.jsonl"}, "line 1 is not valid JSON"),
    ({"benchmark": "{}/few.jsonl", "shots": 5}, "has 4 training rows"),
    ({"benchmark": "capitols"}, "Did you mean 'capitals'"),
    ({"benchmark": "lm_eval:{}/none.yaml"}, "There is no task file"),
    ({"benchmark": "gsm8k", "data_dir": "{}/none"}, "leave --data-dir out"),
    ({"holdout_topic": "Mars"}, "no topic 'Mars' to hold out"),
    ({"model": "{}/none"}, "There is no model"),
    ({"model": "models/none.gguf"}, "There is no model"),
    ({"model": "{}/empty"}, "neither a config.json nor a GGUF file"),
    ({"model": "{}/two"}, "2 GGUF files: name one"),
    ({"model": "{}/a.txt"}, "is not a model: give a folder"),
    ({"model": "{}/pickles"}, "only pickled weights"),
    ({"model": "{}/a.gguf", "precision": "4bit"}, "instead of 4bit"),
    ({"model": "{}/a.gguf", "revision": "main"}, "--revision is for hub models"),
    ({"model": "bundled", "revision": "main"}, "--revision is for hub models"),
    ({"model": "gemma-3-270m"}, "accept with --accept-terms"),
]


@pytest.mark.parametrize(("settings", "sentence"), WRONG)
def test_what_is_wrong_is_said(folders: Path, settings: dict[str, Any], sentence: str) -> None:
    placed = {name: each.format(folders) if isinstance(each, str) else each for name, each in settings.items()}
    with pytest.raises(UserError, match=sentence) as error:
        preflight(RunSpec(**placed))
    assert "\n" not in str(error.value)


def test_what_may_be_right_passes(tiny: Callable[[str], Path]) -> None:
    for model in ("bundled", str(tiny("llama")), "Qwen/Qwen3-0.6B-Base", "gpt2", "nobody/nothing"):
        preflight(RunSpec(model=model))
    for benchmark in ("gsm8k", "lm_eval:arc_easy", "trivia"):
        preflight(RunSpec(benchmark=benchmark))


def test_it_imports_nothing_heavy_and_asks_no_network() -> None:
    """With HF_HUB_OFFLINE unset and an address where nobody listens, a request would fail and be said."""
    code = (
        "import sys; from spt.preflight import preflight; from spt.spec import RunSpec\n"
        "for b in ('capitals', 'gsm8k', 'lm_eval:arc_easy'): preflight(RunSpec(benchmark=b, model='some/model'))\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("words", [["--benchmark", "none.csv"], ["--model", "/none"], ["--holdout-topic", "Mars"]])
def test_the_command_line_says_it_without_torch_while_the_device_is_busy(spt_home: Path, words: list[str]) -> None:
    spt_home.mkdir()
    code = (
        "import sys; from spt import cli; sys.argv = ['spt', 'run', *sys.argv[1:]]\n"
        "try: cli.main()\n"
        f"finally: print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    with FileLock(spt_home / "device.lock"):
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "[]\n"), "no run is begun, nothing heavy is imported"
    assert done.stderr.count("\n") == 1 and "busy" not in done.stderr
    assert not list(spt_home.glob("runs/*"))
