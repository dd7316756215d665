"""Run folders: the only reader and writer of them. Imports no torch.

    runs/<id>/spec.json               {"schema": 1, "spec": {...}}
              events.jsonl            one event a line, appended and flushed
              predictions/<method>.jsonl   one scored answer a line
              verdicts/<method>.jsonl      what a judge said of each answer, where one was asked
              checkpoint.safetensors  the prompt and its optimizer after the last step; gone once the run is finished
              checkpoint-lora.safetensors   the same of LoRA, where the run has it
              prompt/                 the tuned prompt, a PEFT adapter
              prompts/<arm>/          those of further seeds and controls
              lora/                   the tuned LoRA weights, a PEFT adapter
              result.json             written last: its presence means finished
              owner                   hash of the browser that started it, where a page has several visitors
              .notice.json            what the worker has to say of a finished run: judging, or why that failed

A process can be killed at any moment: a torn last line is lost alone, everything else is old or new, never half.
One process at a time writes a run: the one that holds `RunFolder.lock()`.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from spt import queue
from spt.events import (
    SCHEMA,
    Checkpoint,
    Event,
    Message,
    Predictions,
    Probe,
    PromptFiles,
    Result,
    ResumeState,
    RunFailed,
    RunFinished,
    RunStopped,
    StepLoss,
    event_adapter,
)
from spt.files import (
    append_line,
    append_lines,
    complete_lines,
    disk_errors,
    evenly,
    stamp,
    write_atomic,
    write_folder,
    write_new,
)
from spt.home import make_home, runs_root
from spt.metrics import Prediction, Verdict
from spt.run_files import check_schema, damaged, parse_json, read_spec, read_text
from spt.spec import LORA, Method, RunSpec, UserError

log = logging.getLogger(__name__)

Status = Literal["new", "queued", "running", "stopped", "failed", "interrupted", "finished"]


class Notice(BaseModel):
    """What goes on with a finished run, or why it did not: its result stands, so this is no event of the run."""

    done: int = 0  # answers judged
    total: int = 0
    problem: str = ""


class RunFolder:
    """One run on disk. Cheap to make; every call reads what is there now."""

    def __init__(self, path: Path, spec: RunSpec) -> None:
        self.path = path
        self.spec = spec
        self.id = path.name
        self.prompt = path / "prompt"  # exists once tuning is done; those of further arms are under `prompts`
        self.lora = path / "lora"
        self._events = path / "events.jsonl"
        self._checkpoint = path / "checkpoint.safetensors"
        self._lora_checkpoint = path / "checkpoint-lora.safetensors"
        self._result = path / "result.json"
        self._stop = path / ".stop"
        self._notice = path / ".notice.json"
        self._owner = path / "owner"
        self._lock = path / ".lock"

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    # ---- writing

    def append(self, message: Message) -> None:
        """Keep one message of the run. Raises UserError when the disk is full."""
        match message:
            case Predictions():
                append_lines(self._predictions(message.method), [row.model_dump_json() for row in message.rows])
            case Checkpoint():
                data = save(dict(message.tensors), metadata={"step": str(message.step)})
                write_atomic(self._lora_checkpoint if message.method == LORA else self._checkpoint, data)
            case PromptFiles():
                own = {"soft_prompt": self.prompt, LORA: self.lora}
                write_folder(own.get(message.arm, self.path / "prompts" / message.arm), message.files)
            case RunFinished():
                append_line(self._events, message.model_dump_json(by_alias=True))
                write_atomic(self._result, message.result.model_dump_json(by_alias=True, indent=1).encode())
                self._checkpoint.unlink(missing_ok=True)
                self._lora_checkpoint.unlink(missing_ok=True)
            case _:
                append_line(self._events, message.model_dump_json())

    def write_predictions(self, method: Method, rows: Sequence[Prediction]) -> None:
        """Replace the answers of a method, as where they were scored again."""
        write_atomic(self._predictions(method), _lines(rows))

    def write_verdicts(self, method: Method, rows: Sequence[Verdict]) -> None:
        """Replace the judge's verdicts on the answers of a method."""
        write_atomic(self._verdicts(method), _lines(rows))

    # ---- reading

    def events(self) -> list[Event]:
        """All events so far, of every attempt."""
        return self.read_events(0)[0]

    def read_events(self, offset: int) -> tuple[list[Event], int]:
        """The events behind byte `offset`, and the offset to go on from. After `reset` it begins again by itself."""
        lines, end = complete_lines(self._events, offset)
        return [event for line in lines if (event := self._event(line)) is not None], end

    def curves(self, most: int) -> tuple[list[StepLoss], list[Probe]]:
        """At most so many of the losses and of the probes, evenly picked; only they are parsed: many runs are quick."""
        lines, _ = complete_lines(self._events)
        kinds = [[line for line in lines if kind in line] for kind in (b'"type":"step_loss"', b'"type":"probe"')]
        events = [self._event(line) for picked in kinds for line in evenly(picked, most)]
        losses = [event for event in events if isinstance(event, StepLoss)]
        return losses, [event for event in events if isinstance(event, Probe)]

    def predictions(self, method: Method) -> list[Prediction]:
        """The scored answers of a method, each item once: if it was answered again after a crash, the last counts."""
        rows: dict[str, Prediction] = {}
        for line in complete_lines(self._predictions(method))[0]:
            try:
                row = Prediction.model_validate_json(line)
            except ValidationError:
                log.warning("%s: an unreadable line was left out of the answers of %s", self.path, method)
                continue
            rows[row.id] = row
        return list(rows.values())

    def verdicts(self, method: Method) -> list[Verdict]:
        """The judge's verdicts on the answers of a method, those that can be read."""
        rows = []
        for line in complete_lines(self._verdicts(method))[0]:
            try:
                rows.append(Verdict.model_validate_json(line))
            except ValidationError:
                log.warning("%s: an unreadable line was left out of the verdicts on %s", self.path, method)
        return rows

    def resume_state(self) -> ResumeState:
        """What `experiment.run` needs to go on."""
        predictions = {method: tuple(self.predictions(method)) for method in self.spec.methods}
        return ResumeState(
            checkpoint=_read_checkpoint(self._checkpoint, "soft_prompt"),
            lora_checkpoint=_read_checkpoint(self._lora_checkpoint, LORA),
            predictions={method: rows for method, rows in predictions.items() if rows},
            events=tuple(self.events()),
        )

    def result(self) -> Result | None:
        """The result, once the run is finished. Raises UserError for one that cannot be read."""
        try:
            text = read_text(self._result)
        except UserError:
            if not self.finished():  # or not any more: it may be made anew at this moment
                return None
            raise
        check_schema(self.id, parse_json(self._result, text))
        try:
            return Result.model_validate_json(text)
        except ValidationError as error:
            raise UserError(damaged(self._result)) from error

    def status(self) -> Status:
        """Where the run stands. `interrupted` = its process ended without a word; it can be resumed."""
        if self.finished():
            return "finished"
        if self._is_locked():
            return "running"
        if queue.position(self.id) is not None:
            return "queued"
        lines, _ = complete_lines(self._events)
        last = self._event(lines[-1]) if lines else None
        if last is None:
            return "interrupted" if lines or self.has_work() else "new"
        match last:
            case RunStopped():
                return "stopped"
            case RunFailed():
                return "failed"
            case _:
                return "interrupted"

    def finished(self) -> bool:
        """Whether there is a result."""
        return self._result.exists()

    def has_work(self) -> bool:
        """Whether anything was computed that a resumed run would use."""
        return self._checkpoint.exists() or (self.path / "predictions").exists() or self.finished()

    def result_stamp(self) -> int | None:
        """Changes with every result that is written: what was made of a result is good for one stamp."""
        try:
            return self._result.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def changed(self) -> float:
        """Unix time of the last event, or of the creation."""
        for path in (self._events, self.path / "spec.json"):
            try:
                return path.stat().st_mtime
            except FileNotFoundError:
                continue
        return 0.0  # deleted meanwhile

    def signature(self) -> tuple[tuple[int, int], ...]:
        """Another one whenever something was added to the run, or it was made anew: times and sizes of its files."""
        return tuple(stamp(path) for path in (self.path / "spec.json", self._events, self._result))

    # ---- control

    def request_stop(self) -> None:
        """Ask the process that executes the run to stop after the current step or batch."""
        write_atomic(self._stop, b"")

    def clear_stop(self) -> None:
        self._stop.unlink(missing_ok=True)

    def stop_requested(self) -> bool:
        return self._stop.exists()

    def note(self, notice: Notice) -> None:
        """Leave word for whoever looks at the run."""
        write_atomic(self._notice, notice.model_dump_json().encode())

    def notice(self) -> Notice | None:
        try:
            return Notice.model_validate_json(self._notice.read_text())
        except (OSError, ValueError):
            return None

    def clear_notice(self) -> None:
        self._notice.unlink(missing_ok=True)

    def owner(self) -> str | None:
        """Who started the run, by the hash of a cookie; None = the command line, or a page with one visitor."""
        try:
            return self._owner.read_text()
        except (OSError, ValueError):
            return None

    def claim(self, owner: str) -> bool:
        """Make the run that of `owner`, unless it is somebody's."""
        return write_new(self._owner, owner.encode())

    def disown(self) -> None:
        self._owner.unlink(missing_ok=True)

    def lock(self) -> FileLock:
        """Held by the process that executes or changes the run. The system frees it when that process dies."""
        return FileLock(self._lock)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold `lock()` while changing the run. Raises UserError while another process holds it."""
        lock = self.lock()
        try:
            lock.acquire(timeout=1)  # longer than a probe by _is_locked
        except Timeout:
            raise UserError(f"Run {self.id} is running; stop it first.") from None
        try:
            yield
        finally:
            lock.release()

    def reset(self) -> None:
        """Forget everything but the spec, so that the run can be made anew. Raises UserError while it is running."""
        with self.exclusive():
            self.forget()

    def forget(self) -> None:
        """`reset`, for the process that holds `lock()`."""
        with disk_errors(self.path):
            # The result goes first: killed in between, this is an interrupted run, not a finished one without answers.
            checkpoints = (self._checkpoint, self._lora_checkpoint)
            for path in (self._result, *checkpoints, self._stop, self._notice, self._events):
                path.unlink(missing_ok=True)
            for name in ("predictions", "verdicts", "prompt", "prompts", "lora"):
                shutil.rmtree(self.path / name, ignore_errors=True)

    def delete(self) -> None:
        """Remove the folder. Raises UserError while it is running."""
        with self.exclusive(), disk_errors(self.path):
            queue.cancel(self.id)
            doomed = self.path.with_name(f".deleted-{self.id}")
            shutil.rmtree(doomed, ignore_errors=True)
            os.rename(self.path, doomed)
            shutil.rmtree(doomed)

    # ---- inside

    def _predictions(self, method: Method) -> Path:
        return self.path / "predictions" / f"{method}.jsonl"

    def _verdicts(self, method: Method) -> Path:
        return self.path / "verdicts" / f"{method}.jsonl"

    def _event(self, line: bytes) -> Event | None:
        try:
            return event_adapter.validate_json(line)
        except ValidationError:
            log.warning("%s: an unreadable line was left out of the events", self.path)
            return None

    def _is_locked(self) -> bool:
        """Whether someone has the lock. A shared probe: readers that ask at the same moment do not see each other."""
        try:
            descriptor = os.open(self._lock, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)


class Store:
    """All run folders under one root."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or runs_root()
        self._specs: dict[Path, tuple[tuple[int, int], RunSpec]] = {}

    def create(self, spec: RunSpec) -> RunFolder:
        """The folder of this spec; made if it does not exist yet."""
        make_home()
        folder = RunFolder(self.root / spec.run_id, spec)
        if (folder.path / "spec.json").exists():
            return self.get(spec.run_id)  # checks its version
        content = {"schema": SCHEMA, "spec": spec.model_dump()}
        try:
            write_atomic(folder.path / "spec.json", json.dumps(content, indent=1).encode())
        except UserError:
            if folder.path.exists():
                folder.path.rmdir()  # an empty folder is no run
            raise
        return folder

    def get(self, run_id: str) -> RunFolder:
        """The folder of a run id. Raises UserError for one that is not there or that this version cannot read."""
        path = self.root / run_id
        if not re.fullmatch(r"[\w-]{1,100}", run_id) or not (path / "spec.json").is_file():
            raise UserError(f"There is no run {run_id[:80]!r}; `python -m spt runs` lists the runs there are.")
        return RunFolder(path, read_spec(path / "spec.json"))

    def has_result(self, run_id: str) -> bool:
        """Whether that run is finished: cheap, for thousands of them."""
        return (self.root / run_id / "result.json").exists()

    def runs(self) -> list[RunFolder]:
        """All readable runs, the last changed first. `problems` tells of the others."""
        return self.scan()[0]

    def problems(self) -> list[str]:
        """One sentence for each folder that cannot be read."""
        return list(self.scan()[1].values())

    def scan(self) -> tuple[list[RunFolder], dict[str, str]]:
        """`runs` and, by the name of its folder, what is wrong with each of the others; in one look at the disk."""
        found: list[RunFolder] = []
        problems: dict[str, str] = {}
        for path in sorted(self.root.glob("*/spec.json")):
            name = path.parent.name
            if name.startswith("."):
                continue
            try:
                found.append(RunFolder(path.parent, self._spec(path)))
            except UserError as error:
                problems[name] = str(error)
        return sorted(found, key=RunFolder.changed, reverse=True), problems

    def _spec(self, path: Path) -> RunSpec:
        """The spec in a file, parsed once: it is written when the run is created, and stays."""
        now = stamp(path)
        known = self._specs.get(path)
        if known is None or known[0] != now:
            known = self._specs[path] = (now, read_spec(path))
        return known[1]


def _lines(rows: Sequence[BaseModel]) -> bytes:
    return "".join(f"{row.model_dump_json()}\n" for row in rows).encode()


def _read_checkpoint(path: Path, method: Method) -> Checkpoint | None:
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return Checkpoint(int(file.metadata()["step"]), tensors, method)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(damaged(path)) from error
