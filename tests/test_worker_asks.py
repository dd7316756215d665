"""Questions as the app's worker takes them: real processes, a tiny model; before waiting runs, cancelled, killed."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from spt import questions, queue
from spt.events import RunStarted
from spt.experiment import ModelCache
from spt.questions import Ask, Reply
from spt.runner import device_user, execute
from spt.spec import METHODS, RunSpec
from spt.store import RunFolder, Store
from spt.worker import WorkerProcess
from tests.runs import eventually, home_at, small_spec, steps
from tests.tiny import make


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run with long answers: a question to it takes seconds, in which something can happen."""
    model = make("llama", tmp_path_factory.mktemp("llama"), max_position_embeddings=2048)
    with home_at(tmp_path_factory.mktemp("finished")):
        folder = Store().create(small_spec(model, benchmark="arithmetic", steps=1, items=4, probe_every=0))
        execute(folder, ModelCache())
        return folder


@pytest.fixture
def folder(finished: RunFolder, spt_home: Path) -> RunFolder:
    shutil.copytree(finished.path, spt_home / "runs" / finished.id)
    return Store().get(finished.id)


def replied(ask_id: str) -> Callable[[], bool]:
    return lambda: not questions.is_open(ask_id) and questions.reply(ask_id) is not None


def in_answering(ask_id: str) -> Callable[[], bool]:
    def check() -> bool:
        reply = questions.reply(ask_id)
        return reply is not None and reply.state == "answering"

    return check


def reply(ask_id: str) -> Reply:
    found = questions.reply(ask_id)
    assert found is not None
    return found


def test_questions_go_before_waiting_runs_and_after_the_one_at_work(folder: RunFolder, spec: RunSpec) -> None:
    row = folder.predictions("zero_shot")[0]
    ask = Ask.of(folder, row.question)
    running, waits = Store().create(spec), Store().create(spec.model_copy(update={"steps": 2}))
    queue.submit(running)
    with WorkerProcess():
        eventually(lambda: len(steps(running.events())) >= 3)
        queue.submit(waits)
        first, second = questions.submit(ask), questions.submit(ask)
        holder = device_user()
        assert holder is not None and holder.run == running.id and not holder.ask
        assert questions.waiting() == [first, second] and questions.reply(first) is None
        assert queue.position(waits.id) == 1, "questions are no runs"
        eventually(in_answering(first))
        assert running.finished() and not waits.events()
        holder = device_user()
        assert holder is not None and holder.ask == first
        eventually(replied(second))
        eventually(waits.finished)
    assert device_user() is None
    stored = {method: next(r for r in folder.predictions(method) if r.id == row.id) for method in METHODS}
    for ask_id in (first, second):
        assert reply(ask_id).state == "done"
        assert {m: said.text for m, said in reply(ask_id).said.items()} == {m: r.response for m, r in stored.items()}
    assert isinstance(waits.events()[0], RunStarted) and folder.status() == "finished"


@pytest.fixture
def spec(tiny: Callable[[str], Path]) -> RunSpec:
    return small_spec(tiny("llama"), steps=150, items=4, probe_every=0)


def test_a_bad_question_is_told_and_stops_none(folder: RunFolder, spt_home: Path) -> None:
    gone = RunFolder(folder.path.with_name("gone"), folder.spec)
    shutil.copytree(folder.path, gone.path)
    bad = questions.submit(Ask.of(gone, "What is 1 + 1?"))
    shutil.rmtree(gone.path)
    torn = questions.submit(Ask.of(folder, "What is 1 + 2?"))
    (spt_home / "asks" / f"{torn}.json").write_text("{")
    good = questions.submit(Ask.of(folder, "What is 1 + 3?"))
    with WorkerProcess():
        eventually(replied(good))
        (folder.prompt / "spt.json").unlink()
        damaged = questions.submit(Ask.of(folder, "What is 1 + 4?"))
        eventually(replied(damaged))
    said = {name: reply(ask_id) for name, ask_id in (("gone", bad), ("torn", torn), ("damaged", damaged))}
    assert {each.state for each in said.values()} == {"failed"} and reply(good).state == "done"
    assert "There is no run 'gone'" in said["gone"].note and "ask again" in said["torn"].note
    assert "soft prompt of run" in said["damaged"].note


def test_a_question_is_taken_back_while_it_is_answered(folder: RunFolder, spt_home: Path) -> None:
    ask = Ask.of(folder, "What is 1 + 1?")
    with WorkerProcess():
        first, second = questions.submit(ask), questions.submit(ask)
        eventually(in_answering(first))
        questions.close(first)
        eventually(lambda: questions.reply(first) is None, what="its reply goes")
        eventually(replied(second))
    assert reply(second).state == "done"
    assert [path.name for path in (spt_home / "asks").iterdir()] == [f"{second}.reply.json"]


def test_a_worker_that_is_killed_tells_its_question_and_one_that_is_ended_leaves_it(folder: RunFolder) -> None:
    ask = Ask.of(folder, "What is 1 + 1?")
    with WorkerProcess() as worker:
        first, second = questions.submit(ask), questions.submit(ask)
        eventually(in_answering(first))
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        eventually(replied(first))
        assert reply(first).state == "failed" and reply(first).said
        assert reply(first).note == (
            "The worker process ended unexpectedly (signal 9; most likely out of memory). Ask something shorter, or a "
            "run of a smaller model."
        )
        eventually(in_answering(second))
    assert questions.waiting() == [second], "the next worker answers it"
    with WorkerProcess():
        eventually(replied(second))
    assert reply(second).state == "done"
