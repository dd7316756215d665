"""The command line: what it prints, how it ends, and that Ctrl-C and kill -9 lose nothing."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from spt import cli, queue
from spt.benchmarks import BENCHMARKS
from spt.events import RunStopped
from spt.experiment import ModelCache
from spt.presets import PRESETS
from spt.runner import execute
from spt.spec import RunSpec
from spt.store import Store
from tests.runs import eventually, outcome, small_spec, steps, unbroken

COMMANDS = ("run", "rescore", "runs", "report", "export", "push", "models", "benchmarks", "preview", "memory", "doctor")


@pytest.fixture(scope="module")
def spec(tiny: Callable[[str], Path]) -> RunSpec:
    return small_spec(tiny("llama"), steps=3, items=4)


@pytest.fixture
def spt(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """`spt("run", ...)` -> exit status, stdout, stderr; in this process."""
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["spt", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return (end.value.code, *capsys.readouterr())

    yield call
    signal.signal(signal.SIGTERM, handler)


def words_of(spec: RunSpec) -> list[str]:
    """The arguments of the command that a page would show for this spec."""
    words = shlex.split(spec.command())
    assert words[:3] == ["python", "-m", "spt"]
    return words[3:]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(spt: Callable[..., tuple[int, str, str]], command: str) -> None:
    status, out, _ = spt(command, "--help")
    assert status == 0
    assert f"Example: python -m spt {command}" in out


def test_run_has_an_option_for_every_setting_with_its_help_and_default(
    spt: Callable[..., tuple[int, str, str]],
) -> None:
    out = " ".join(re.sub(r"[│╭╮╰╯─]", " ", spt("run", "--help")[1]).split())
    for name, field in RunSpec.model_fields.items():
        assert f"--{name.replace('_', '-')} " in out
        assert field.description is not None and field.description in out
        assert field.default in (None, ()) or f"[default: {field.default}]" in out


def test_run_ends_in_a_table_and_is_shown_again(spt: Callable[..., tuple[int, str, str]], spec: RunSpec) -> None:
    status, out, _ = spt(*words_of(spec))
    folder = Store().get(spec.run_id)
    assert status == 0 and folder.status() == "finished"
    for text in (
        "Zero-shot", "Few-shot", "Soft prompt", "4 test items", "Format", "Knowledge", "Exact match",
        "96 trainable parameters", "3 steps", "peak memory", f"Run folder: {folder.path}",
    ):  # fmt: skip
        assert text in out
    events = folder.events()

    status, again, _ = spt(*words_of(spec))
    assert status == 0 and f"Run {folder.id} is finished; its stored result" in again
    assert again.splitlines()[1:] == out.splitlines()[-len(again.splitlines()) + 1 :]
    assert folder.events() == events

    status, stdout, _ = spt(*words_of(spec), "--json")
    assert status == 0
    assert stdout == (folder.path / "result.json").read_text() + "\n"

    assert spt(*words_of(spec), "--again")[0] == 0
    assert len(folder.events()) == len(events) and folder.events() != events

    assert folder.id in spt("runs")[1]


def test_json_is_alone_on_stdout_while_the_run_goes(spt: Callable[..., tuple[int, str, str]], spec: RunSpec) -> None:
    status, out, err = spt(*words_of(spec), "--json")
    assert status == 0
    assert json.loads(out)["run"] == spec.run_id
    assert "Tuning the soft prompt" in err


@pytest.fixture(scope="module")
def long_spec(tiny: Callable[[str], Path]) -> RunSpec:
    return small_spec(tiny("llama"), steps=150, items=4, probe_every=50)


@pytest.fixture(scope="module")
def expected(long_spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return unbroken(long_spec, tmp_path_factory.mktemp("unbroken"), lambda folder: execute(folder, ModelCache()))


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda kill: kill.name)
def test_the_same_command_goes_on_after_ctrl_c_and_kill(
    spt: Callable[..., tuple[int, str, str]], long_spec: RunSpec, expected: dict[str, Any], kill: signal.Signals
) -> None:
    command = [sys.executable, "-m", "spt", *words_of(long_spec)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: Store().runs() and len(steps(Store().get(long_spec.run_id).events())) >= 3)
        process.send_signal(kill)
        out, err = process.communicate(timeout=60)
    folder = Store().get(long_spec.run_id)
    if kill == signal.SIGKILL:
        assert (process.returncode, folder.status()) == (-9, "interrupted")
    else:
        assert (process.returncode, folder.status()) == (130, "stopped")
        assert out.endswith(f"Stopped; the same command goes on from here:\n  {long_spec.command()}\n")
    assert "Traceback" not in err
    done = len(set(steps(folder.events())))
    assert 3 <= done < 150

    status, out, _ = spt(*words_of(long_spec))
    assert status == 0
    assert f"Going on with run {folder.id}: {done} of 150 steps done." in out
    assert outcome(folder) == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "/nowhere/at-all"], "/nowhere/at-all"),
        (["--benchmark", "capitols"], "Unknown benchmark 'capitols'"),
        (["--steps", "0"], "--steps 0 is not possible"),
        (["--virtual-tokens", "1000000"], "--virtual-tokens 1000000 is not possible"),
        (["--learning-rate", "-1"], "--learning-rate -1.0 is not possible"),
        (["--control", "shufled"], "--control 'shufled' is not possible: input should be 'shuffled' or '"),
        (["--learning-rate", "nan"], "--learning-rate nan is not possible"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(
    spt: Callable[..., tuple[int, str, str]], spec: RunSpec, words: list[str], sentence: str
) -> None:
    earlier = Store().create(spec)
    before = {path: path.stat().st_mtime_ns for path in earlier.path.iterdir()}
    status, _, err = spt("run", *words)
    assert status == 2
    assert sentence in err and err.count("\n") == 1 and "Traceback" not in err
    assert [run.id for run in Store().runs()] == [earlier.id]
    assert {path: path.stat().st_mtime_ns for path in earlier.path.iterdir()} == before


def test_a_wrong_choice_or_option_is_a_usage_error(spt: Callable[..., tuple[int, str, str]]) -> None:
    assert spt("run", "--precision", "int3")[0] == 2
    assert spt("run", "--colour", "red")[0] == 2
    assert Store().runs() == []


def test_a_run_that_fails_midway_keeps_what_there_is(spt: Callable[..., tuple[int, str, str]], spec: RunSpec) -> None:
    folder = Store().create(spec)
    (folder.path / ".checkpoint.safetensors.tmp").symlink_to("/dev/full")
    status, _, err = spt(*words_of(spec))
    assert status == 1
    assert "is full; free some space" in err and err.count("\n") == 1
    assert folder.status() == "failed" and folder.predictions("zero_shot")


def test_a_run_of_another_process_is_left_alone(spt: Callable[..., tuple[int, str, str]], spec: RunSpec) -> None:
    folder = Store().create(spec)
    with folder.lock():
        status, _, err = spt(*words_of(spec))
    assert status == 2 and "is running already, in another process" in err
    assert folder.events() == [] and folder.path.exists()


@pytest.fixture
def busy(spt_home: Path) -> Iterator[None]:
    """Another run holds the device."""
    spt_home.mkdir(exist_ok=True)
    with FileLock(spt_home / "device.lock"):
        yield


def test_a_busy_device_costs_no_finished_run(
    spt: Callable[..., tuple[int, str, str]], spec: RunSpec, spt_home: Path
) -> None:
    folder = Store().create(spec)
    execute(folder, ModelCache())
    before = outcome(folder)
    with FileLock(spt_home / "device.lock"):
        status, _, err = spt(*words_of(spec), "--again")
    assert status == 2 and "The device is busy" in err
    assert folder.status() == "finished" and outcome(folder) == before


def test_a_busy_device_takes_away_only_what_this_call_made(
    spt: Callable[..., tuple[int, str, str]], spec: RunSpec, busy: None
) -> None:
    assert spt(*words_of(spec))[0] == 2
    assert Store().runs() == [], "made by this call, and nothing in it"
    folder = Store().create(spec)  # by the page, say
    assert spt(*words_of(spec))[0] == 2
    assert folder.path.exists() and folder.status() == "new"
    queue.submit(folder)
    assert spt(*words_of(spec))[0] == 2
    assert folder.status() == "queued", "it keeps its place"
    queue.cancel(folder.id)
    folder.append(RunStopped())
    assert spt(*words_of(spec))[0] == 2
    assert [event.type for event in folder.events()] == ["run_stopped"]


def test_runs_tells_of_folders_it_cannot_read(spt: Callable[..., tuple[int, str, str]], spec: RunSpec) -> None:
    assert "No runs yet" in spt("runs")[1]
    good = Store().create(spec)
    (Store().root / "old").mkdir()
    (Store().root / "old" / "spec.json").write_text('{"schema": 7}')
    status, out, err = spt("runs")
    assert status == 0
    assert good.id in out and "written by another version of spt" in err
    (good.path / "result.json").write_text('{"schema": 9}')
    status, out, err = spt("runs")
    assert status == 0 and "unreadable" in out
    assert f"Run folder {good.id} was written by another version of spt (schema 9" in err


def test_names_and_ids_stand_whole_in_eighty_columns(
    spt: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli.out, "width", 80)
    run = Store().create(RunSpec(benchmark="arithmetic", model="HuggingFaceTB/SmolLM2-360M-Instruct"))
    queue.submit(run)
    assert run.id in spt("runs")[1]
    out = spt("models")[1]
    for name, preset in PRESETS.items():
        line = next(line for line in out.splitlines() if line.split()[:1] == [name])
        assert ("gated" in line, "terms" in line) == (preset.gated, bool(preset.terms))
    assert "--accept-terms" in out and max(map(len, out.splitlines())) <= 80


def test_doctor_tells_what_this_machine_has(spt: Callable[..., tuple[int, str, str]], spt_home: Path) -> None:
    status, out, _ = spt("doctor")
    assert status == 0
    for text in ("cpu", "memory", str(spt_home), "torch", "transformers", "offline mode"):
        assert text in out
    assert "{" not in out


def test_models_and_benchmarks_are_listed(spt: Callable[..., tuple[int, str, str]]) -> None:
    assert all(name in spt("models")[1] for name in ("bundled", "gemma-3-270m"))
    assert all(name in spt("benchmarks")[1] for name in ("capitals", "capitals-mc", "trivia", "arithmetic"))


def test_benchmarks_are_listed_with_source_and_licence_on_a_narrow_terminal(
    spt: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = spt("benchmarks")[1].splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    for name, benchmark in BENCHMARKS.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert benchmark.licence in line and (benchmark.hub is None or benchmark.hub.id in line)


def test_preview_marks_the_target(spt: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    file = tmp_path / "questions.csv"
    rows = (f"Which [bold]word[/bold] is {i}?,word{i},a topic" for i in range(12))
    file.write_text("\n".join(("question,answer,topic", *rows)) + "\n")
    status, out, _ = spt("preview", "--benchmark", str(file), "--rows", "2")
    assert status == 0
    assert "8 train, 4 test" in out and out.count("⟦word") == 2 and "Which [bold]word[/bold] is" in out
    tagged = ("--template", "<a>{answer}</a>", "--pattern", "<a>(.+)</a>")
    assert "⟦<a>word" in spt("preview", "--benchmark", str(file), *tagged)[1]
    status, _, err = spt("preview", "--benchmark", str(file), "--answer-format", "letter")
    assert (status, err.count("\n")) == (2, 1) and "choose one of option-copy, hash" in err


def test_the_folder_of_the_environment_is_no_part_of_a_run_that_does_not_read_it(
    spt: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spec: RunSpec
) -> None:
    monkeypatch.setenv("SPT_DATA_DIR", str(tmp_path))
    assert spt(*words_of(spec))[0] == 0
    assert [folder.id for folder in Store().runs()] == [spec.run_id]
    status, _, err = spt("run", "--benchmark", "gsm8k", "--model", spec.model)
    assert status == 2 and f"There is no {tmp_path}/openai/gsm8k/main/train.jsonl" in err
