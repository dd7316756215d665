"""Rows of data sets on the hub, from there or from a folder in its place, and what becomes of rows that do not fit.

The folder (`--data-dir`, `SPT_DATA_DIR`) holds `<hub id>/<config>/<split>.jsonl` or `.parquet` with the hub's column
names. Neither way runs code of a data set: `datasets` has no loading scripts any more, and files here are only parsed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spt.benchmarks.answers import is_bare_phrase
from spt.benchmarks.base import Example, HubSet, Split
from spt.benchmarks.formats import AnswerFormat
from spt.spec import UserError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COPY_INSTRUCTION = (
    "Answer the question. Copy the whole line of the correct option, its letter included, exactly as shown, and write "
    "nothing else."
)
MAX_BYTES = 2_000_000_000  # of one file; it is read into memory

Row = dict[str, Any]


class DroppedRow(Exception):
    """This row is left out; the message is the reason that is counted."""


def load(hub: HubSet, data_dir: Path | None, form: AnswerFormat, to_example: Callable[[Row], Example]) -> Split:
    """Both splits. Rows that do not fit are dropped and counted by reason; `to_example` raises DroppedRow for its own.

    A question that stands in both splits, with whatever options, is dropped from train; one that stands twice in a
    split is kept once.
    """
    raw = {"train": read(hub, hub.train, data_dir), "test": read(hub, hub.test, data_dir)}
    return build(raw, form, to_example, f"{hub.id} ({hub.config})")


def build(
    raw: Mapping[str, Sequence[Row]], form: AnswerFormat, to_example: Callable[[Row], Example], source: str
) -> Split:
    """The splits of raw rows, as `load` makes them. Raises UserError where a row lacks a column or nothing is left."""
    dropped: Counter[str] = Counter()
    rows: dict[str, list[Example]] = {}
    tested: set[str] = set()
    for split in ("test", "train"):
        seen: set[tuple[str, ...]] = set()
        rows[split] = []
        for number, row in enumerate(raw[split], start=1):
            try:
                example = to_example(row)
                _check(example, form)
                keys = same_question(example)
                if folded(example.question) in tested:
                    raise DroppedRow("question also in test")
                if keys & seen:
                    raise DroppedRow("question twice")
            except DroppedRow as reason:
                dropped[f"{split}: {reason}"] += 1
                continue
            except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
                raise UserError(
                    f"{source}: row {number} of {split} is not as this benchmark needs it "
                    f"({type(error).__name__}: {error}); check the columns {', '.join(map(str, row))}."
                ) from None
            seen |= keys
            rows[split].append(example)
        tested = {folded(example.question) for example in rows[split]}
        if not rows[split]:
            raise UserError(f"{source}: no row of {split} can be used ({_reasons(dropped)}).")
    return Split(train=rows["train"], test=rows["test"], dropped=dict(sorted(dropped.items())))


def _reasons(dropped: Counter[str]) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in sorted(dropped.items())) or "there are none"


def same_question(example: Example) -> set[tuple[str, ...]]:
    """Keys of which two examples of one split share one if they are the same question.

    Closed questions share their wording more often ("Which of these is true?"), so they are the same where the options
    are too, in any order, or the right answer is.
    """
    question = folded(example.question)
    if not example.options:
        return {(question,)}
    texts = sorted(folded(option.split(". ", 1)[-1]) for option in example.options)
    return {(question, *texts), (question, folded(example.answer))}


def folded(text: str) -> str:
    """Without regard to case and spacing. Signs stay: `2+3` and `2-3` are two questions."""
    return " ".join(text.casefold().split())


def _check(example: Example, form: AnswerFormat) -> None:
    """Raises DroppedRow where not even the target is right and in form: no answer could be."""
    if not example.question.strip():
        raise DroppedRow("no question")
    trimmed = form.trim(f"{example.target}\n")[0]
    if trimmed != example.target or not form.exact_match(trimmed, example):
        raise DroppedRow(f"answer does not fit the form ({form.name})")


def with_options(question: str, texts: Sequence[str], key: int | None, topic: str = "") -> Example:
    """A closed example of two options or more; `key` is the place of the right one, None where it is not told."""
    if key is None:
        raise DroppedRow("no label")
    options = [" ".join(str(text).split()) for text in texts]
    if not 0 <= key < len(options) or len(options) > len(LETTERS):
        raise DroppedRow("label is none of the options")
    if not options[key]:
        raise DroppedRow("the right option is empty")
    if options.count(options[key]) > 1:
        raise DroppedRow("the right option stands twice")
    lines = tuple(f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=False))
    return Example(question=question.strip(), answer=options[key], target=lines[key], options=lines, topic=topic)


def place(key: Any, labels: Sequence[str]) -> int | None:
    """Where the key stands among a row's labels. `1` is the first of A, B, C and `A` the first of 1, 2, 3; None
    without a key, as in test rows whose labels are kept secret."""
    key = str(key).strip()
    if not key:
        return None
    names = [str(label).strip() for label in labels]
    if key in names:
        return names.index(key)
    if key.isdigit():
        return int(key) - 1
    return LETTERS.index(key) if key in LETTERS else -1


def choices_row(row: Row, question: str = "question") -> Example:
    """Row -> Example for the sets that store `choices` as texts with labels, and the label of the right one."""
    choices = row["choices"]
    return with_options(row[question], list(choices["text"]), place(row["answerKey"], list(choices["label"])))


def phrase_row(question: str, answers: Sequence[str]) -> Example:
    """An open example: the first answer that is a bare phrase is the reference, the others are accepted too."""
    accepted = list(dict.fromkeys(" ".join(str(answer).split()) for answer in answers if str(answer).strip()))
    if not accepted:
        raise DroppedRow("no label")
    first = next(filter(is_bare_phrase, accepted), accepted[0])
    aliases = tuple(answer for answer in accepted if answer != first)
    return Example(question=question.strip(), answer=first, target=first, aliases=aliases)


def read(hub: HubSet, split: str, data_dir: Path | None) -> list[Row]:
    """The rows of one split, as they are. Raises UserError where they cannot be had."""
    if data_dir is None:
        from spt.benchmarks.hub_download import download

        return download(hub, split)
    folder = data_dir / hub.id / hub.config
    for path in (folder / f"{split}.jsonl", folder / f"{split}.parquet"):
        if path.is_file():
            return _read_file(path)
    shards = sorted(folder.glob(f"{split}-*-of-*.parquet"))  # as the hub itself names them
    if shards:
        return [row for shard in shards for row in _read_file(shard)]
    raise UserError(f"There is no {folder / split}.jsonl (or .parquet): put it there, or leave --data-dir out.")


def _read_file(path: Path) -> list[Row]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path} is larger than {MAX_BYTES / 1e9:.0f} GB: give a smaller file.")
        return _read_parquet(path) if path.suffix == ".parquet" else [row for _, row in json_lines(path)]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None


def json_lines(path: Path) -> Iterator[tuple[int, Row]]:
    """Line number and row of a JSONL file; empty lines are passed over. Raises UserError naming file and line."""
    number = 0
    with path.open("rb") as file:  # in bytes, so that a wrong one is found in its line
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                if not text.strip():
                    continue
                row = json.loads(text)
                if "\\ud" in text.lower():  # half of a pair of escapes is no character
                    json.dumps(row, ensure_ascii=False).encode()
            except (UnicodeDecodeError, UnicodeEncodeError):
                raise UserError(f"{path}, line {number} is not UTF-8: save the file as UTF-8.") from None
            except (ValueError, RecursionError) as error:
                what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                raise UserError(f"{path}, line {number} is not valid JSON ({what}): mend that line.") from None
            if not isinstance(row, dict):
                raise UserError(f"{path}, line {number} is not a JSON object with named columns: mend that line.")
            yield number, row


def _read_parquet(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_table(path).to_pylist())
    except pa.ArrowException as error:
        raise UserError(f"{path} is no readable parquet file ({str(error).splitlines()[0]}): get it anew.") from None
