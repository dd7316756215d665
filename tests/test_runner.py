"""Executing runs in this process: real runs on a tiny model, broken off at every kind of moment and gone on with."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from spt import experiment
from spt.events import Checkpoint, Message, Predictions, PromptFiles, RunFailed, RunFinished, StepLoss
from spt.experiment import ModelCache
from spt.files import append_line, write_atomic
from spt.home import home
from spt.runner import device_holder, execute
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from tests.runs import outcome, small_spec, steps, unbroken

CACHE = ModelCache()  # one model for all tests here


@pytest.fixture(scope="module")
def spec(tiny: Callable[[str], Path]) -> RunSpec:
    return small_spec(tiny("llama"))


@pytest.fixture(scope="module")
def expected(spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outcome of the unbroken run."""
    return unbroken(spec, tmp_path_factory.mktemp("unbroken"), lambda folder: execute(folder, CACHE))


def test_a_run_is_stored_and_a_finished_one_is_not_run_again(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = Store().create(spec)
    heard: list[Message] = []
    assert execute(folder, CACHE, heard.append) == folder.status() == "finished"
    assert outcome(folder) == expected  # and the same spec gives the same bits
    assert isinstance(heard[-1], RunFinished)
    assert [e for e in heard if not isinstance(e, Predictions | Checkpoint | PromptFiles)] == folder.events()
    assert steps(folder.events()) == [1, 2, 3, 4, 5]
    assert len(expected["predictions"]["soft_prompt"]) == spec.items

    heard.clear()
    assert execute(folder, CACHE, heard.append) == "finished"
    assert heard == []
    assert device_holder() is None


def is_step(number: int) -> Callable[[Message], bool]:
    return lambda message: isinstance(message, StepLoss) and message.step == number


MOMENTS: dict[str, Callable[[Message], bool]] = {
    "at the start": lambda message: True,
    "in zero-shot": lambda message: isinstance(message, Predictions),
    "in few-shot": lambda message: isinstance(message, Predictions) and message.method == "few_shot",
    "after a loss, before its checkpoint": is_step(3),
    "after a checkpoint": lambda message: isinstance(message, Checkpoint) and message.step == 3,
    "before the probe of its step": lambda message: isinstance(message, Checkpoint) and message.step == 4,
    "after the last step": lambda message: isinstance(message, Checkpoint) and message.step == 5,
    "after the prompt": lambda message: isinstance(message, PromptFiles),
    "in soft-prompt answers": lambda message: isinstance(message, Predictions) and message.method == "soft_prompt",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_it_goes_on_to_the_same_result(
    spec: RunSpec, expected: dict[str, Any], moment: str
) -> None:
    """A kill is simulated by writing no further message; tests/test_worker.py and test_cli.py kill real processes."""
    folder = Store().create(spec)
    for message in experiment.run(spec, folder.resume_state(), CACHE):
        folder.append(message)
        if MOMENTS[moment](message):
            break
    assert folder.status() == "interrupted"
    assert execute(RunFolder(folder.path, spec), CACHE) == "finished"
    assert outcome(folder) == expected


ARMS_MOMENTS: dict[str, Callable[[Message], bool]] = {
    "after a checkpoint": MOMENTS["after a checkpoint"],
    "after the first prompt": MOMENTS["after the prompt"],
    "in the answers of a control": lambda message: isinstance(message, Predictions) and message.method == "shuffled",
    "in the tuned items": lambda message: isinstance(message, Predictions) and message.method == "tuned_items",
}


@pytest.mark.parametrize("moment", ARMS_MOMENTS)
def test_a_run_with_controls_goes_on_to_the_same_result(
    spec: RunSpec, moment: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spec = spec.model_copy(update={"seeds": 2, "control": ("shuffled",)})
    whole = unbroken(spec, tmp_path_factory.mktemp("unbroken"), lambda folder: execute(folder, CACHE))
    assert len(whole["prompt"]) == 9 and set(whole["predictions"]) == set(spec.methods)
    folder = Store().create(spec)
    for message in experiment.run(spec, folder.resume_state(), CACHE):
        folder.append(message)
        if ARMS_MOMENTS[moment](message):
            break
    assert execute(RunFolder(folder.path, spec), CACHE) == "finished"
    assert outcome(folder) == whole
    folder.reset()
    assert not (folder.path / "prompts").exists()


def test_killed_before_the_result_was_written(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = Store().create(spec)
    execute(folder, CACHE)
    (folder.path / "result.json").unlink()
    assert execute(folder, CACHE) == "finished"
    assert outcome(folder) == expected


def test_stop_ends_within_one_step_and_resume_goes_on(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = Store().create(spec)

    def stop_at(message: Message) -> None:
        if is_step(2)(message):
            folder.request_stop()

    assert execute(folder, CACHE, stop_at) == folder.status() == "stopped"
    assert steps(folder.events()) == [1, 2]
    folder.clear_stop()
    assert execute(folder, CACHE) == "finished"
    assert outcome(folder) == expected


def test_stop_in_an_evaluation_keeps_the_batches_so_far(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = Store().create(spec)
    execute(folder, CACHE, lambda message: folder.request_stop() if isinstance(message, Predictions) else None)
    kept = folder.predictions("zero_shot")
    assert 0 < len(kept) < spec.items
    folder.clear_stop()
    again: list[Message] = []
    execute(folder, CACHE, again.append)
    repeated = [row.id for m in again if isinstance(m, Predictions) and m.method == "zero_shot" for row in m.rows]
    assert not set(repeated) & {row.id for row in kept}
    assert outcome(folder) == expected


def test_ctrl_c_stops_and_can_be_gone_on_with(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = Store().create(spec)

    def press(message: Message) -> None:
        if is_step(3)(message):
            raise KeyboardInterrupt

    assert execute(folder, CACHE, press) == folder.status() == "stopped"
    assert execute(folder, CACHE) == "finished"
    assert outcome(folder) == expected


def test_told_to_leave_it_is_interrupted_without_a_word(spec: RunSpec) -> None:
    folder = Store().create(spec)
    asked = itertools.count()
    assert execute(folder, CACHE, leave=lambda: next(asked) == 4) == folder.status() == "interrupted"
    assert [event.type for event in folder.events() if event.type == "run_stopped"] == []


def test_a_user_error_is_noted_in_one_sentence(spec: RunSpec) -> None:
    folder = Store().create(spec.model_copy(update={"model": "/nowhere/at-all"}))
    with pytest.raises(UserError) as error:
        execute(folder, CACHE)
    last = folder.events()[-1]
    assert isinstance(last, RunFailed) and (last.message, last.detail) == (str(error.value), "")
    assert (folder.status(), folder.has_work()) == ("failed", False)
    assert device_holder() is None


def test_a_fault_of_ours_is_noted_with_its_traceback(spec: RunSpec) -> None:
    folder = Store().create(spec)

    def break_down(message: Message) -> None:
        if is_step(1)(message):
            raise ZeroDivisionError("of all things")

    with pytest.raises(ZeroDivisionError):
        execute(folder, CACHE, break_down)
    last = folder.events()[-1]
    assert isinstance(last, RunFailed)
    assert last.message == "Internal error, a fault of spt: ZeroDivisionError: of all things."
    assert "Traceback" in last.detail
    assert execute(folder, CACHE) == "finished"  # what there was is kept


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(MemoryError(), "ran out of memory"), (OSError(errno.ENOSPC, "No space left"), "is full; free some space")],
)
def test_too_little_memory_or_disk_is_one_sentence(spec: RunSpec, error: Exception, sentence: str) -> None:
    folder = Store().create(spec)

    def break_down(message: Message) -> None:
        if is_step(1)(message):
            raise error

    with pytest.raises(UserError, match=sentence):
        execute(folder, CACHE, break_down)
    assert folder.status() == "failed"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_ends_the_run_and_it_goes_on_when_there_is_room(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = Store().create(spec)
    blocker = folder.path / ".checkpoint.safetensors.tmp"
    blocker.symlink_to("/dev/full")
    with pytest.raises(UserError, match="is full; free some space"):
        execute(folder, CACHE)
    assert folder.status() == "failed"
    assert execute(folder, CACHE) == "finished"
    assert outcome(folder) == expected


def test_a_busy_device_is_told_with_the_run_that_has_it(spec: RunSpec) -> None:
    folder = Store().create(spec)
    other = Store().create(spec.model_copy(update={"seed": 1}))
    messages: list[str] = []

    def start_another(message: Message) -> None:
        if not messages:
            with pytest.raises(UserError) as error:
                execute(other, CACHE)
            messages.append(str(error.value))
            folder.request_stop()

    execute(folder, CACHE, start_another)
    assert f"The device is busy with run {folder.id} (process" in messages[0]
    assert (other.status(), other.events()) == ("new", [])


def test_waiting_for_the_device_ends_when_told(spec: RunSpec) -> None:
    folder = Store().create(spec)
    home().mkdir(exist_ok=True)
    with FileLock(home() / "device.lock"):
        asked = itertools.count()
        assert execute(folder, CACHE, wait=True, leave=lambda: next(asked) == 2) == "new"
        folder.request_stop()
        assert execute(folder, CACHE, wait=True) == "new"
    assert folder.events() == []


def test_a_run_that_another_process_has_is_left_alone(spec: RunSpec) -> None:
    folder = Store().create(spec)
    with folder.lock(), pytest.raises(UserError, match="is executed by another process"):
        execute(folder, CACHE)
    assert folder.events() == []


def test_running_anew_forgets_the_result_only_when_it_can_run(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = Store().create(spec)
    execute(folder, CACHE)
    with FileLock(home() / "device.lock"), pytest.raises(UserError, match="busy"):
        execute(folder, CACHE, again=True)
    assert outcome(folder) == expected, "a busy device costs nothing"

    class Broken(ModelCache):
        def get(self, spec: RunSpec, report: Callable[[str], None]) -> Any:
            raise UserError("The model has gone.")

    with pytest.raises(UserError, match="gone"):
        execute(folder, Broken(), again=True)
    assert outcome(folder) == expected, "nor does a model that cannot be loaded"

    heard: list[Message] = []
    assert execute(folder, CACHE, heard.append, again=True) == "finished"
    assert steps(folder.events()) == [1, 2, 3, 4, 5] and outcome(folder) == expected
    assert any(isinstance(message, StepLoss) for message in heard), "it was made anew"


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_home_that_cannot_be_is_one_sentence(
    place: str, spec: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPT_HOME", str(tmp_path / place))
    with pytest.raises(UserError, match="set SPT_HOME"):
        Store().create(spec)
    with pytest.raises(UserError, match="set SPT_HOME"):
        write_atomic(home() / "terms" / "a.txt", b"")
    with pytest.raises(UserError, match="set SPT_HOME"):
        append_line(home() / "a.txt", "")
    assert device_holder() is None
