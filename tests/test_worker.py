"""The worker as the app runs it: real processes, real runs on a tiny model; stopped, killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from spt import queue
from spt.events import RunFailed, RunFinished, RunStarted, StepLoss
from spt.experiment import ModelCache
from spt.runner import execute
from spt.spec import RunSpec
from spt.store import RunFolder, Store
from spt.worker import WorkerProcess
from tests import fake_judge
from tests.finished import finished_run
from tests.runs import eventually, outcome, small_spec, steps, unbroken


@pytest.fixture(scope="module")
def spec(tiny: Callable[[str], Path]) -> RunSpec:
    """Long enough to be caught in the middle of its tuning."""
    return small_spec(tiny("llama"), steps=150, items=4, probe_every=50)


@pytest.fixture(scope="module")
def expected(spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outcome of the unbroken run, in this process."""
    return unbroken(spec, tmp_path_factory.mktemp("unbroken"), lambda folder: execute(folder, ModelCache()))


def submitted(spec: RunSpec) -> RunFolder:
    folder = Store().create(spec)
    queue.submit(folder)
    return folder


def in_tuning(folder: RunFolder) -> Callable[[], bool]:
    return lambda: len(steps(folder.events())) >= 3


def has_ended(folder: RunFolder) -> Callable[[], bool]:
    return lambda: folder.status() in ("finished", "failed", "stopped")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_queue_keeps_order_and_each_run_once() -> None:
    folders = [Store().create(RunSpec(seed=seed)) for seed in (3, 1, 2)]
    for folder in (*folders, folders[0]):
        queue.submit(folder)
    assert [entry.run for entry in queue.entries()] == [folder.id for folder in folders]
    assert [queue.position(folder.id) for folder in folders] == [0, 1, 2]
    (queue.folder() / "0-torn.json").write_text('{"run"')
    (queue.folder() / "0-list.json").write_text("[]")
    queue.stop(folders[0])  # it only waited
    assert (folders[0].status(), folders[1].status()) == ("new", "queued")
    assert [queue.position(folder.id) for folder in folders] == [None, 0, 1]
    assert not queue.cancel(folders[0].id)


def test_runs_are_taken_in_turn_and_a_bad_one_stops_none(spec: RunSpec) -> None:
    queue.enqueue("no-such-run")
    bad = submitted(spec.model_copy(update={"model": "/nowhere/at-all"}))
    short = spec.model_copy(update={"steps": 2})
    first, second = submitted(short), submitted(short.model_copy(update={"seed": 1}))
    with WorkerProcess():
        eventually(has_ended(second))
    assert [run.status() for run in (bad, first, second)] == ["failed", "finished", "finished"]
    assert isinstance(bad.events()[-1], RunFailed)
    assert queue.entries() == []
    finished, started = first.events()[-1], second.events()[0]
    assert isinstance(finished, RunFinished) and isinstance(started, RunStarted)
    assert finished.time <= started.time


def test_start_tries_a_failed_run_again(spec: RunSpec, tmp_path: Path) -> None:
    model = tmp_path / "model"
    folder = submitted(spec.model_copy(update={"model": str(model), "steps": 2}))
    with WorkerProcess():
        eventually(has_ended(folder))
        assert folder.status() == "failed" and not folder.has_work()
        shutil.copytree(spec.model, model)
        assert submitted(folder.spec).id == folder.id
        eventually(lambda: folder.status() == "finished")
    assert [event.type for event in folder.events()].count("run_failed") == 1


def test_stop_and_resume(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = submitted(spec)
    with WorkerProcess():
        eventually(in_tuning(folder))
        assert folder.status() == "running"
        queue.stop(folder)
        requested = time.time()
        eventually(has_ended(folder))
        assert folder.status() == "stopped"
        assert len([e for e in folder.events() if isinstance(e, StepLoss) and e.time > requested]) <= 1
        assert queue.entries() == []
        queue.submit(folder)
        eventually(has_ended(folder))
    assert outcome(folder) == expected


def test_a_worker_that_is_ended_leaves_its_run_to_the_next(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = submitted(spec)
    with WorkerProcess() as waiting_later:
        eventually(in_tuning(folder))
        with WorkerProcess() as second:  # a second app on the same home: its worker waits
            waiting_later.stop()
            interrupted = folder.events()
            assert not any(event.type in ("run_stopped", "run_failed", "run_finished") for event in interrupted)
            eventually(has_ended(folder))  # and takes over
            assert second.pid is not None and alive(second.pid)
    resumed = [event.resumed for event in folder.events() if isinstance(event, RunStarted)]
    assert resumed == [False, True]
    assert outcome(folder) == expected


def test_a_worker_that_is_killed_fails_its_run_once_and_is_replaced(spec: RunSpec, expected: dict[str, Any]) -> None:
    folder = submitted(spec)
    after = submitted(spec.model_copy(update={"steps": 2}))
    with WorkerProcess() as worker:
        eventually(in_tuning(folder))
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        eventually(has_ended(folder))
        last = folder.events()[-1]
        assert isinstance(last, RunFailed) and last.detail == ""
        assert last.message.startswith(
            "The worker process ended unexpectedly (signal 9; most likely out of memory)."
        )
        eventually(has_ended(after))
        assert (folder.status(), after.status()) == ("failed", "finished")
        queue.submit(folder)
        eventually(lambda: folder.status() == "finished")
    assert outcome(folder) == expected


def test_a_worker_that_was_told_to_end_has_failed_nothing(
    spec: RunSpec, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As `systemctl stop` does: it signals the worker and the app, and the worker is the first to end."""
    folder = submitted(spec)
    with WorkerProcess() as worker:
        eventually(in_tuning(folder))
        assert worker.pid is not None
        first = worker.pid
        os.kill(first, signal.SIGTERM)
        eventually(lambda: not alive(first))
        assert folder.status() == "queued"
    assert folder.status() == "queued" and not any(event.type == "run_failed" for event in folder.events())
    monkeypatch.setattr("spt.worker.TOLD", 0.1)  # the app is not ended: the run is gone on with
    with WorkerProcess() as worker:
        eventually(lambda: len(steps(folder.events())) >= 6)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGTERM)
        eventually(has_ended(folder))
    assert outcome(folder) == expected
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_whole_app_that_is_told_to_end_ends_without_a_word(spt_home: Path) -> None:
    """The real app, its worker told first."""
    with subprocess.Popen(
        [sys.executable, "app.py", "--port", str(free_port())], cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as app:  # fmt: skip
        eventually((spt_home / "worker.lock").exists)
        worker = psutil.Process(app.pid).children()[0]
        worker.terminate()
        worker.wait(60)
        app.terminate()
        out, err = app.communicate(timeout=60)
    assert app.returncode == 0 and "spt is at" in out and "unexpectedly" not in err


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_finished_run_is_made_anew_once_it_can_begin(spec: RunSpec, tmp_path: Path) -> None:
    model = shutil.copytree(spec.model, tmp_path / "model")
    folder = submitted(spec.model_copy(update={"model": str(model), "steps": 2}))
    with WorkerProcess():
        eventually(lambda: folder.status() == "finished" and not queue.entries())
        before = (folder.path / "result.json").read_bytes()
        shutil.move(model, tmp_path / "gone")
        # Another model in between, so that the first is not in memory any more.
        eventually(has_ended(submitted(spec.model_copy(update={"steps": 2}))))
        queue.submit(folder, again=True)
        eventually(lambda: not queue.entries())
        notice = folder.notice()
        assert (folder.path / "result.json").read_bytes() == before and folder.status() == "finished"
        assert notice is not None and "model" in notice.problem
        shutil.move(tmp_path / "gone", model)
        queue.submit(folder, again=True)
        assert folder.notice() is None
        eventually(lambda: not queue.entries())
    assert folder.status() == "finished" and (folder.path / "result.json").read_bytes() != before
    assert [event.type for event in folder.events()].count("run_finished") == 1


def test_a_run_that_has_begun_anew_is_gone_on_with() -> None:
    folder = Store().create(RunSpec())
    queue.enqueue(folder.id, again=True)
    queue.begun(folder.id)
    assert [(entry.run, entry.again) for entry in queue.entries()] == [(folder.id, False)]


def test_the_worker_asks_a_judge_and_a_dead_one_changes_nothing() -> None:
    folder = finished_run(RunSpec(items=4), lambda method, i, item: item.target)
    before = (folder.path / "result.json").read_bytes()
    with WorkerProcess():
        queue.judge(folder, {"model": "j", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0})
        eventually(lambda: not queue.entries())
        notice = folder.notice()
        assert notice is not None and "The judge j" in notice.problem
        assert (folder.path / "result.json").read_bytes() == before
        with fake_judge.serve(lambda ask: fake_judge.verdict(True, True)) as judge:
            queue.judge(folder, {"model": "j", "base_url": judge.url})
            assert folder.notice() is None
            eventually(lambda: not queue.entries())
    result = folder.result()
    assert result is not None and result.judge is not None and result.judge.model == "j"
    assert folder.notice() is None and len(folder.verdicts("soft_prompt")) == 4


def test_a_worker_ends_with_its_app(spt_home: Path) -> None:
    code = (
        "import time; from spt.worker import WorkerProcess\n"
        "print(WorkerProcess().start().pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as app:
        assert app.stdout is not None
        worker = int(app.stdout.readline())
        eventually((spt_home / "worker.lock").exists)
        assert alive(worker)
        app.kill()
    eventually(lambda: not alive(worker), 40)
