"""The process that owns the device: keeps the model loaded and takes questions and queued runs. Imports torch late.

    python -m spt.worker          # the app starts it by itself, through WorkerProcess

One worker at a time serves an SPT_HOME; a further one waits until the first has gone. A worker ends with its parent.
Ended by SIGTERM, it leaves its run interrupted and queued, and the next worker goes on with it. A question takes
seconds, so it goes before runs that only wait; it waits for the one that is being executed.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from spt import questions, queue
from spt.events import Message, RunFailed, RunFinished, RunStarted, RunStopped
from spt.home import make_home
from spt.judge import JudgeSettings
from spt.questions import Reply
from spt.runner import answer, device_holder, execute, judge_run
from spt.spec import UserError
from spt.store import Notice, Store

if TYPE_CHECKING:
    from spt.experiment import ModelCache

log = logging.getLogger(__name__)

POLL = 0.2  # seconds
TOLD = 3.0  # seconds for the app to be ended too, where its worker was
GRACE = 20.0  # seconds an orphan gets to end its step or batch
WRITTEN = 0.15  # seconds between two words on an answer that is being written; a page looks four times a second
CLEANED = 60.0  # seconds between two looks for questions of long ago


class _TakenBack(Exception):
    """Nobody waits for this answer any more, or the worker is to end."""


class Worker:
    """Takes runs from the queue until it is told to end or its parent has gone."""

    def __init__(self, parent: int) -> None:
        self.ending = threading.Event()
        self.parent = parent

    def terminate(self, signum: int, frame: FrameType | None) -> None:
        """Handler of SIGTERM: end after the current step or batch."""
        self.ending.set()

    def watch_parent(self) -> None:
        """Without its app a worker would hold the device for nobody: it ends too, even in the middle of a load."""
        while os.getppid() == self.parent:
            time.sleep(POLL)
        self.ending.set()
        time.sleep(GRACE)
        os._exit(1)  # what is on disk is whole at any moment

    def serve(self) -> None:
        """Wait for the worker's lock, then work. Raises UserError where SPT_HOME cannot be made."""
        lock = FileLock(make_home() / "worker.lock")
        while not self.ending.is_set():
            try:
                lock.acquire(timeout=0)
            except Timeout:
                self.ending.wait(POLL)
                continue
            try:
                self._work()
            finally:
                lock.release()

    def _work(self) -> None:
        from spt.experiment import ModelCache  # torch: seconds, and the page is there already

        cache = ModelCache()
        cleaned = float("-inf")
        while not self.ending.is_set():
            if time.monotonic() - cleaned > CLEANED:
                questions.clean()
                cleaned = time.monotonic()
            if asked := questions.waiting():
                self._answer(asked[0], cache)
                continue
            waiting = queue.entries()
            if not waiting:
                self.ending.wait(POLL)
                continue
            if waiting[0].judge is None:
                self._take(waiting[0], cache)
            else:
                if not waiting[0].judge.get("base_url"):
                    cache = ModelCache()  # makes room: this judge is loaded here
                self._judge(waiting[0])

    def _take(self, entry: queue.Entry, cache: ModelCache) -> None:
        run_id = entry.run

        def listen(message: Message) -> None:
            if isinstance(message, RunStarted):
                queue.begun(run_id)
            # Off the queue while the run is still locked: no reader sees an ended run as queued.
            if isinstance(message, RunFinished | RunStopped | RunFailed):
                queue.cancel(run_id)

        try:
            folder = Store().get(run_id)
            status = execute(folder, cache, listen, wait=True, leave=self.ending.is_set, again=entry.again)
        except UserError as error:
            log.error("%s: %s", run_id, error)
            _say(run_id, str(error))
            queue.cancel(run_id)  # also when the run cannot be opened, or the failure could not be noted
        except Exception:
            log.exception("%s failed", run_id)
            queue.cancel(run_id)
        else:
            log.info("%s: %s", run_id, status)
            if status == "finished":
                queue.cancel(run_id)  # it was finished before it was queued

    def _answer(self, ask_id: str, cache: ModelCache) -> None:
        """Answer a question, and say so far what there is; it may be taken back at any time."""
        told = float("-inf")

        def gone() -> bool:
            return self.ending.is_set() or not questions.is_open(ask_id)

        def listen(reply: Reply) -> None:
            nonlocal told
            if gone():
                raise _TakenBack
            if time.monotonic() - told > WRITTEN:
                questions.tell(ask_id, reply)
                told = time.monotonic()

        ask = questions.read(ask_id)
        try:
            if ask is None:
                raise UserError("The question cannot be read: ask again.") if questions.is_open(ask_id) else _TakenBack
            reply = answer(ask, cache, listen, ask_id, gone)
            if reply is None:
                raise _TakenBack
            questions.tell(ask_id, reply)
        except _TakenBack:
            if self.ending.is_set():
                return  # for the next worker, from its beginning
            questions.forget(ask_id)
        except UserError as error:
            log.error("question %s: %s", ask_id, error)
            _tell_problem(ask_id, str(error))
        except Exception as error:
            log.exception("question %s could not be answered", ask_id)
            _tell_problem(ask_id, _internal(error))
        questions.close(ask_id)

    def _judge(self, entry: queue.Entry) -> None:
        """Have a finished run judged. Where that fails its result stays as it is, and a notice says why."""
        told = 0.0

        def listen(done: int, total: int) -> None:
            nonlocal told
            if done == total or time.monotonic() - told > 0.5:  # a page looks once a second
                told = time.monotonic()
                folder.note(Notice(done=done, total=total))

        try:
            folder = Store().get(entry.run)
            settings = JudgeSettings.parse(**(entry.judge or {}))
            if settings is not None:
                judge_run(folder, settings, listen)
            folder.clear_notice()
        except UserError as error:
            log.error("%s: %s", entry.run, error)
            _say(entry.run, str(error))
        except Exception as error:
            log.exception("%s could not be judged", entry.run)
            _say(entry.run, _internal(error))
        finally:
            queue.cancel(entry.run)


def _internal(error: Exception) -> str:
    return f"Internal error, a fault of spt: {type(error).__name__}; the server's log has more."


def _tell_problem(ask_id: str, problem: str) -> None:
    """Tell whoever waits for an answer why there is none, and leave what was written of it."""
    said = questions.reply(ask_id)
    try:
        questions.tell(ask_id, Reply(state="failed", note=problem, said=said.said if said else {}))
    except UserError as error:  # a full disk
        log.error("question %s: %s", ask_id, error)


def _say(run_id: str, problem: str) -> None:
    """Tell whoever looks at a finished run what went wrong with it; other runs say it by their events."""
    try:
        folder = Store().get(run_id)
        if folder.finished():
            folder.note(Notice(problem=problem))
    except UserError as error:
        log.error("%s: %s", run_id, error)


class WorkerProcess:
    """Keeps a worker process running, for as long as this object is started. Imports no torch.

    When a worker dies by itself (most often the system killed it for memory), the run it was at is marked as failed, so
    that the next worker does not die of it again, and a new worker is started.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._changing = threading.Lock()  # of `_process`, so that none is started behind the back of `stop`
        self._thread: threading.Thread | None = None

    def start(self) -> WorkerProcess:
        """Start the worker and watch over it."""
        self._stopping.clear()
        self._process = _spawn()
        self._thread = threading.Thread(target=self._watch, name="worker-watch", daemon=True)
        self._thread.start()
        return self

    def stop(self, grace: float = 10.0) -> None:
        """End the worker. It finishes its step or batch within `grace` seconds, or is killed; its run stays queued."""
        with self._changing:
            self._stopping.set()
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> WorkerProcess:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """Process id of the current worker."""
        return self._process.pid if self._process else None

    def _watch(self) -> None:
        pause = 0.0
        while not self._stopping.is_set():
            assert self._process is not None
            started = time.monotonic()
            code = self._process.wait()
            if self._stopping.is_set():
                return
            if _told(code):
                # Whoever ends a whole service (`systemctl stop`, a container) tells the worker and the app at once, and
                # the worker may be the quicker one. Its run stays queued.
                if self._stopping.wait(TOLD):
                    return
                log.info("The worker was told to end; a new one is started.")
                self._replace()
                continue
            log.error("The worker process ended unexpectedly (%s); a new one is started.", _reason(code))
            _fail_work_of(self._process.pid, code)
            # One that dies as soon as it starts would otherwise be started in a tight loop.
            pause = min(30.0, 2 * pause + 1) if time.monotonic() - started < 5 else 0.0
            self._stopping.wait(pause)
            self._replace()

    def _replace(self) -> None:
        with self._changing:
            if not self._stopping.is_set():
                self._process = _spawn()


def _told(code: int) -> bool:
    """Whether a worker ended because it was told to, also before it could listen; it has left its run in order."""
    return code in (0, -signal.SIGTERM)


def _spawn() -> subprocess.Popen[bytes]:
    package_parent = str(Path(__file__).resolve().parent.parent)
    paths = [package_parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    # Its own session: a Ctrl-C in the app's terminal goes to the app, which ends the worker in order.
    return subprocess.Popen(
        [sys.executable, "-m", "spt.worker", str(os.getpid())],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def _reason(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    return f"signal {-code}" + ("; most likely out of memory" if -code == signal.SIGKILL else "")


def _fail_work_of(pid: int, code: int) -> None:
    """Mark the run or question that a dead worker was at as failed, and take it off the queue."""
    holder = device_holder()
    if holder is None or holder.pid != pid:
        return
    what = f"The worker process ended unexpectedly ({_reason(code)})."
    if holder.ask:
        _tell_problem(holder.ask, f"{what} Ask something shorter, or a run of a smaller model.")
        questions.close(holder.ask)
        return
    try:
        queue.cancel(holder.run)
        folder = Store().get(holder.run)
        if folder.finished():  # it was being judged, or about to be made anew
            folder.note(Notice(problem=f"{what} The stored result is as it was; choose a smaller model."))
            return
        advice = "Choose a smaller model, a lower precision or a smaller batch size; Resume goes on from the last step."
        folder.append(RunFailed(message=f"{what} {advice}"))
    except UserError as error:
        log.error("%s could not be marked as failed: %s", holder.run, error)


def main() -> None:
    """Serve the queue until SIGTERM, or until the parent (the process id given, or the real one) has gone."""
    logging.basicConfig(format="%(asctime)s worker: %(message)s", datefmt="%H:%M:%S", level=logging.INFO)
    worker = Worker(int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid())
    signal.signal(signal.SIGTERM, worker.terminate)
    threading.Thread(target=worker.watch_parent, name="parent-watch", daemon=True).start()
    try:
        worker.serve()
    except UserError as error:  # no SPT_HOME (any more)
        sys.exit(str(error))


if __name__ == "__main__":
    main()
