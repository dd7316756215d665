"""Questions put to a finished run, and what has been answered so far: small files under `SPT_HOME/asks`. No torch.

    asks/1785900000000000000-5f0c….json         the question: there until it is answered; taking it away cancels it
    asks/1785900000000000000-5f0c….reply.json   what the worker has to say so far

A name begins with the time, so the order of names is the order of work, and ends in what nobody can guess: who knows
the id of a question asked it. Both files go after an hour, whoever may have closed the page meanwhile.
"""

from __future__ import annotations

import math
import re
import secrets
import string
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from spt.benchmarks.base import Example
from spt.files import write_atomic
from spt.home import home
from spt.metrics import Prediction, StoppedBy
from spt.spec import Method, UserError
from spt.store import RunFolder

LONGEST = 8_000  # characters of question and options; the model's context may be shorter, and the worker says so
MOST_OPTIONS = 10
MOST_WAITING = 50
KEPT = 3600.0  # seconds

_SEPARATOR = "\u2063"  # invisible; stands for the soft prompt while a chat template is rendered
_LABEL = re.compile(r"([A-Z])[.)]\s+(?=\S)")


class Ask(BaseModel):
    """A question to a run, checked and as the benchmark would put it."""

    model_config = ConfigDict(frozen=True)
    run: str
    example: Example
    marked: bool  # the reference is known; if not, that of `example` only says whether a number is asked for

    @classmethod
    def of(cls, folder: RunFolder, question: str, options: Sequence[str] = (), reference: str = "") -> Ask:
        """Raises UserError for what cannot be asked. A test question of the run brings its own reference."""
        rows = _rows(folder)
        question, reference = _clean(question), _clean(reference)
        if not question:
            raise UserError("There is no question: type one first.")
        listed = _options(rows[0], [text for option in options if (text := _clean(option))])
        length = len(question) + sum(map(len, listed)) + len(reference)
        if length > LONGEST:
            raise UserError(f"The question has {length:,} characters, and at most {LONGEST:,} are taken: shorten it.")
        target = _chosen(listed, reference) if listed else reference
        known = next((row for row in rows if (_clean(row.question), row.options) == (question, listed)), None)
        if known is not None and target in ("", known.target, known.answer):
            return cls(run=folder.id, example=_example(known), marked=True)
        answer = target or (listed[0] if listed else rows[0].answer)
        example = Example(question=question, options=listed, answer=answer, target=answer)
        return cls(run=folder.id, example=example, marked=bool(target))


class Said(BaseModel):
    """One method's answer, as far as it is written. None = not known yet, or not to be known without a reference."""

    model_config = ConfigDict(frozen=True)
    text: str = ""
    stopped_by: StoppedBy | None = None  # None while it is being written
    in_format: bool | None = None
    knows: bool | None = None
    exact_match: bool | None = None
    logprobs: tuple[float, ...] = ()  # of the options, in nats

    @property
    def shares(self) -> list[float]:
        """The options' likelihoods as shares that sum to one."""
        weights = [math.exp(value - max(self.logprobs)) for value in self.logprobs]
        return [weight / sum(weights) for weight in weights]


class Reply(BaseModel):
    """What can be said of a question so far."""

    model_config = ConfigDict(frozen=True)
    state: Literal["loading", "answering", "done", "failed"]
    note: str = ""  # what is being loaded, or what went wrong
    said: dict[Method, Said] = {}


# ---- files


def submit(ask: Ask) -> str:
    """Leave a question for the worker, and return its id. Raises UserError where too many wait already."""
    if len(waiting()) >= MOST_WAITING:
        raise UserError(f"{MOST_WAITING} questions are waiting already: ask again in a minute.")
    ask_id = f"{time.time_ns()}-{secrets.token_hex(8)}"
    write_atomic(_question(ask_id), ask.model_dump_json().encode())
    return ask_id


def waiting() -> list[str]:
    """The ids of all questions that are not answered yet, the next one (or the one at work) first."""
    return sorted(path.stem for path in _folder().glob("[0-9]*.json") if not path.name.endswith(".reply.json"))


def read(ask_id: str) -> Ask | None:
    """The question; None if it was taken back, or cannot be read."""
    try:
        return Ask.model_validate_json(_question(ask_id).read_text())
    except (OSError, ValueError):
        return None


def is_open(ask_id: str) -> bool:
    """Whether the question still waits for its (whole) answer."""
    return _question(ask_id).exists()


def close(ask_id: str) -> None:
    """Take a question away: it is answered, or its asker has cancelled it."""
    _question(ask_id).unlink(missing_ok=True)


def tell(ask_id: str, reply: Reply) -> None:
    """Replace what is said of a question."""
    write_atomic(_reply(ask_id), reply.model_dump_json().encode())


def reply(ask_id: str) -> Reply | None:
    """What is said of a question so far; None as long as nobody has taken it up."""
    try:
        return Reply.model_validate_json(_reply(ask_id).read_text())
    except (OSError, ValueError):
        return None


def forget(ask_id: str) -> None:
    """Remove the reply to a question that nobody waits for any more."""
    _reply(ask_id).unlink(missing_ok=True)


def clean(kept: float = KEPT) -> None:
    """Remove questions and replies older than `kept` seconds."""
    for path in _folder().glob("[0-9]*.json"):
        try:
            if time.time() - path.stat().st_mtime > kept:
                path.unlink()
        except FileNotFoundError:
            continue


def _folder() -> Path:
    return home() / "asks"


def _question(ask_id: str) -> Path:
    return _folder() / f"{ask_id}.json"


def _reply(ask_id: str) -> Path:
    return _folder() / f"{ask_id}.reply.json"


# ---- checking


def _rows(folder: RunFolder) -> list[Prediction]:
    """The stored zero-shot answers of a finished run: they show how its benchmark writes questions."""
    if folder.result() is None:
        raise UserError(f"Run {folder.id} is not finished: `{folder.spec.command()}` goes on with it.")
    rows = folder.predictions("zero_shot")
    if not rows:
        raise UserError(f"Run {folder.id} has lost its answers: `{folder.spec.command()} --again` makes it anew.")
    return rows


def _clean(text: str) -> str:
    """Without surrounding white space, halves of characters, and the mark that the prompt needs for itself."""
    return text.encode("utf-8", "replace").decode().replace(_SEPARATOR, "").strip()


def _options(like: Prediction, texts: list[str]) -> tuple[str, ...]:
    """Options as the benchmark lists them: with letters where its own have them."""
    if not like.options:
        if texts:
            raise UserError("The questions of this run have no options to choose from: leave the options out.")
        return ()
    if not 2 <= len(texts) <= MOST_OPTIONS:
        raise UserError(f"This run is multiple choice: give 2 to {MOST_OPTIONS} options, one a line.")
    letters = string.ascii_uppercase
    if [label.group(1) for option in texts if (label := _LABEL.match(option))] == list(letters[: len(texts)]):
        texts = [_LABEL.sub("", option, count=1) for option in texts]
    for i, text in enumerate(texts):
        if text.casefold() in {other.casefold() for other in texts[:i]}:
            raise UserError(f"Two options are the same ({text[:60]}): each may stand there once.")
    if all(_LABEL.match(option) for option in like.options):
        return tuple(f"{letter}. {text}" for letter, text in zip(letters, texts, strict=False))
    return tuple(texts)


def _chosen(options: Sequence[str], reference: str) -> str:
    """The option that a reference names: by its letter, its text or both. Empty for none."""
    if not reference:
        return ""
    wanted = reference.casefold()
    for option in options:
        label = _LABEL.match(option)
        names = [option, *([label.group(1), f"{label.group(1)}.", option[label.end() :]] if label else [])]
        if wanted in (name.casefold() for name in names):
            return option
    raise UserError("The reference is none of the options: give the right option or its letter, or leave it empty.")


def _example(row: Prediction) -> Example:
    return Example(
        question=row.question,
        answer=row.answer,
        target=row.target,
        options=row.options,
        aliases=row.aliases,
        topic=row.topic,
    )
