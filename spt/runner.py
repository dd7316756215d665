"""Executing a run: one process, one device, every message into the run folder. Imports torch only when a run begins.

The command line calls `execute` itself; the app has the worker do it.
"""

from __future__ import annotations

import json
import logging
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from filelock import FileLock, Timeout

from spt.events import Message, RunFailed, RunStopped
from spt.files import disk_errors, write_atomic
from spt.home import home, make_home
from spt.out_of_memory import is_out_of_memory
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Status, Store

if TYPE_CHECKING:
    from spt.events import Result
    from spt.experiment import ModelCache
    from spt.judge import Judge, JudgeSettings
    from spt.questions import Ask, Reply
    from spt.transfer import Done, PromptScores

log = logging.getLogger(__name__)


def execute(
    folder: RunFolder,
    cache: ModelCache,
    listen: Callable[[Message], None] | None = None,
    wait: bool = False,
    leave: Callable[[], bool] | None = None,
    again: bool = False,
    device_is_ours: bool = False,
) -> Status:
    """Run, or go on with, a run until it is finished or stopped, and return how it stands then.

    `listen` hears every message after it is stored, while the run is still locked. With `wait` it waits for a busy
    device, which otherwise is a UserError. `leave` is asked after every message: if true, the run is left as it is
    (`interrupted`), for another process to go on with. `again` forgets a stored result, once the device is ours and the
    model is loaded: what cannot be run anew is not lost. `device_is_ours`: another scheduler has given this process its
    device, so none is waited for. Raises what the run raises, after noting it as failed.
    """

    def keep(message: Message) -> None:
        folder.append(message)
        if listen is not None:
            listen(message)

    leave = leave or (lambda: False)
    with _run_lock(folder) if device_is_ours else _device(folder, wait, leave) as ours:
        if not ours:
            return folder.status()
        if again:
            _load(folder, cache)
            if folder.stop_requested():  # taken back meanwhile: the stored result stays
                return folder.status()
            folder.forget()
        if folder.finished():
            return "finished"
        try:
            return _run(folder, cache, keep, leave)
        except KeyboardInterrupt:
            keep(RunStopped())
            return "stopped"
        except UserError as error:
            _note_failure(keep, RunFailed(message=str(error)))
            raise
        except Exception as error:
            first_line = (str(error).splitlines() or [""])[0].rstrip(".")
            message = f"Internal error, a fault of spt: {type(error).__name__}: {first_line}."
            _note_failure(keep, RunFailed(message=message, detail=traceback.format_exc()))
            raise


def rescore_run(folder: RunFolder) -> Result:
    """Recompute every metric of a finished run from its stored answers. Raises UserError for one that is not."""
    from spt import rescore

    with folder.exclusive():
        return rescore.by_rule(folder)


def judge_run(
    folder: RunFolder,
    settings: JudgeSettings,
    listen: Callable[[int, int], None] = lambda done, total: None,
    report: Callable[[str], None] = lambda message: None,
) -> Result:
    """Have the answers of a finished run judged. `listen(done, total)` counts answers, `report` hears of downloads.

    A local judge takes the device as a run does. Raises UserError, in which case the run's result is as it was.
    """
    from spt import rescore
    from spt.quiet import quiet

    def make() -> Judge:
        if settings.base_url is not None:
            from spt.judge_endpoint import Endpoint

            return Endpoint(settings)
        from spt.judge_local import LocalJudge  # torch: seconds

        return LocalJudge(settings, report)

    if settings.base_url is not None:
        with folder.exclusive():
            return rescore.by_judge(folder, make, settings, listen)
    with _device(folder, wait=False, leave=lambda: False), quiet(), _memory_errors(), disk_errors(home()):
        return rescore.by_judge(folder, make, settings, listen)


def answer(
    ask: Ask,
    cache: ModelCache,
    listen: Callable[[Reply], None],
    name: str = "command line",
    leave: Callable[[], bool] | None = None,
) -> Reply | None:
    """Answer a question with a finished run; `listen` hears of every token, and may end it by raising.

    With `leave` it waits for a busy device until that is true, and then returns None; without, a busy device is a
    UserError. `name` says to others whose question has the device.
    """
    folder = Store().get(ask.run)
    holder = Holder(folder.id, os.getpid(), name)
    with _take_device(holder, leave is not None, leave or (lambda: False)) as ours:
        if not ours:
            return None
        from spt import ask as asking  # torch: seconds
        from spt.quiet import quiet

        with quiet(), _memory_errors(), disk_errors(home()):
            return asking.answer(folder, ask, cache, listen)


def eval_prompt(
    folder: RunFolder,
    spec: RunSpec,
    force: bool,
    listen: Callable[[Done], None] = lambda at: None,
    report: Callable[[str], None] = lambda note: None,
) -> PromptScores:
    """Score the stored prompt of a run with these settings (`transfer.settings_of`), on the device once it is free.

    Nothing of the run is changed. Raises UserError as `transfer.evaluate` does, and where the device is busy.
    """
    from spt.quiet import quiet
    from spt.transfer import evaluate

    work = evaluate(folder, spec, force, report)
    with _device(folder, wait=False, leave=lambda: False), quiet(), _memory_errors(), closing(work):
        while True:
            try:
                listen(next(work))
            except StopIteration as end:
                scores: PromptScores = end.value
                return scores


def _load(folder: RunFolder, cache: ModelCache) -> None:
    from spt.quiet import quiet

    with quiet(), _memory_errors(), disk_errors(home()):
        cache.get(folder.spec, lambda note: None)


def _run(
    folder: RunFolder, cache: ModelCache, keep: Callable[[Message], None], leave: Callable[[], bool]
) -> Status:
    from spt import experiment  # torch: seconds
    from spt.quiet import quiet

    run = experiment.run(folder.spec, folder.resume_state(), cache, tell=keep)
    with quiet(), _memory_errors(), disk_errors(home()), closing(run) as messages:
        for message in messages:
            keep(message)
            if folder.stop_requested() and not folder.finished():
                keep(RunStopped())
                return "stopped"
            if leave():
                break
    return "finished" if folder.finished() else "interrupted"


def _note_failure(keep: Callable[[Message], None], failure: RunFailed) -> None:
    try:
        keep(failure)
    except UserError as error:  # a full disk; the caller still hears of the failure itself
        log.error("The failure could not be noted in the run folder: %s", error)


@contextmanager
def _memory_errors() -> Iterator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(
            "The device ran out of memory; choose a smaller model, a lower precision or a smaller batch size."
        ) from error


class Holder(NamedTuple):
    """Who has the device."""

    run: str
    pid: int
    ask: str = ""  # the question to the run that is being answered; empty where the run itself is executed


def device_holder() -> Holder | None:
    """Who last took the device and did not give it back; the process may be dead."""
    try:
        content = json.loads((home() / "device.json").read_text())
        return Holder(str(content["run"]), int(content["pid"]), str(content.get("ask", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def device_user() -> Holder | None:
    """Who has the device now; None where nobody has."""
    holder = device_holder()
    try:
        if holder is not None:
            os.kill(holder.pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # somebody else's, and there
    return holder


@contextmanager
def _device(folder: RunFolder, wait: bool, leave: Callable[[], bool]) -> Iterator[bool]:
    """Hold the device, then the run. Gives False if it was told to leave or to stop while it waited."""
    with _take_device(Holder(folder.id, os.getpid()), wait, lambda: leave() or folder.stop_requested()) as ours:
        if not ours:
            yield False
            return
        with _run_lock(folder):
            yield True


@contextmanager
def _take_device(holder: Holder, wait: bool, leave: Callable[[], bool]) -> Iterator[bool]:
    """Hold the device, and let others know who does. Gives False if it was told to leave while it waited."""
    place = make_home()
    device, note = FileLock(place / "device.lock"), place / "device.json"
    while True:
        try:
            device.acquire(timeout=0)
            break
        except Timeout:
            if not wait:
                raise UserError(_busy(holder.run)) from None
        if leave():
            yield False
            return
        time.sleep(0.2)
    try:
        write_atomic(note, json.dumps(holder._asdict()).encode())
        yield True
    finally:
        note.unlink(missing_ok=True)
        device.release()


@contextmanager
def _run_lock(folder: RunFolder) -> Iterator[bool]:
    """Hold the run. Raises UserError where another process does."""
    try:
        run = folder.lock().acquire(timeout=2)  # longer than a reader's probe of the lock
    except Timeout:
        raise UserError(f"Run {folder.id} is executed by another process; wait for it to end.") from None
    with run:
        yield True


def _busy(wanted: str) -> str:
    holder = device_holder()
    if holder is None:
        return "The device is busy with another run; try again when it has ended."
    if holder.ask:
        return f"The device is busy with a question (process {holder.pid}); try again in a moment."
    run = "this very run" if holder.run == wanted else f"run {holder.run}"
    stop = "on its page, or with Ctrl-C where it runs"
    return f"The device is busy with {run} (process {holder.pid}); wait for it to end, or stop it: {stop}."
