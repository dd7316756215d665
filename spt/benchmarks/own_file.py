"""Reads a file of the user's own questions, JSONL or CSV, and says in one sentence, by row, what is wrong with it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from spt.benchmarks.hub_rows import LETTERS, folded, json_lines
from spt.spec import UserError

MAX_BYTES = 200_000_000
COLUMNS = ("question", "answer", "options", "aliases", "topic", "split")
IGNORED = ("id",)
_FORMULA = re.compile(r"[=+\-@\t]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x9b]")  # a terminal would obey some of them
_NUMBER = re.compile(r"[-+−]?[$€£]?[\d.,]+(?:[eE][-+]?\d+)?%?")


@dataclass(frozen=True)
class OwnRow:
    """One question as the file has it. `line` is where the row stands, for messages."""

    line: int
    question: str
    answer: str
    options: tuple[str, ...]
    aliases: tuple[str, ...]
    topic: str
    split: str  # train, test or empty


def read(path: Path) -> list[OwnRow]:
    """All rows, in order. Raises UserError, which names the row, for whatever is wrong with one, or with the file."""
    try:
        size = path.stat().st_size
    except (OSError, ValueError) as error:  # ValueError: a path that cannot be one
        what = "There is no file" if isinstance(error, FileNotFoundError) else "Cannot read"
        raise UserError(f"{what} {str(path)!r}: give the path of a .jsonl or .csv file.") from None
    if path.is_dir():
        raise UserError(f"{path} is a folder: give the path of a .jsonl or .csv file.")
    if size > MAX_BYTES:
        raise UserError(
            f"{path} has {size / 1e6:,.0f} MB, and {MAX_BYTES / 1e6:.0f} MB is the most: give a part of it."
        )
    try:
        raw = list(_csv_rows(path) if path.suffix.lower() == ".csv" else json_lines(path))
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror or error}.") from None
    if not raw:
        raise UserError(f"{path} is empty: it needs rows with the columns question and answer.")
    rows = [_row(path, line, cells) for line, cells in raw]
    _check_together(path, rows)
    return rows


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and cells by column."""
    text = _utf8(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip().lower() for cell in cells]
                if len(header) == 1 and ";" in header[0]:
                    raise UserError(f"{path} parts its columns by semicolons: save it with commas.")
                if len(set(header)) < len(header):
                    raise UserError(f"{path} has a column twice: {', '.join(header)}.")
                continue
            if len(cells) != len(header):
                raise UserError(
                    f"{path}, row at line {start} has {len(cells)} cells and the header {len(header)}: put quotation "
                    "marks around cells with commas in them."
                )
            for name, cell in zip(header, cells, strict=True):
                if name not in IGNORED:
                    _no_formula(path, start, name, cell)
            yield start, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise UserError(f"{path}, row at line {line} is not valid CSV ({error}): mend its quotation marks.") from None


def _utf8(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line} is not UTF-8: save the file as UTF-8.") from None


def _no_formula(path: Path, line: int, column: str, cell: str) -> None:
    """A spreadsheet would compute such a cell when a result that holds it is opened there."""
    parts = cell.split("|") if column in ("options", "aliases") else [cell]
    if _FORMULA.match(cell) and not all(_NUMBER.fullmatch(part.strip()) for part in parts):
        raise UserError(
            f"{path}, row at line {line}: {column} begins with {cell[0]!r} and so is a formula to a spreadsheet: "
            "write it as a text, or give the file as JSONL."
        )


def _row(path: Path, line: int, cells: dict[str, Any]) -> OwnRow:
    where = f"{path}, row at line {line}"
    for name in cells:
        if name not in COLUMNS and name not in IGNORED:
            close = get_close_matches(str(name), COLUMNS, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise UserError(f"{where}: {name!r} is no column that spt knows ({', '.join(COLUMNS)}).{hint}")
    question, answer = (_text(where, name, cells.get(name)) for name in ("question", "answer"))
    if not question or not answer:
        missing = "question" if not question else "answer"
        raise UserError(f"{where} has no {missing}: fill it in or take the row out.")
    split = _text(where, "split", cells.get("split")).lower()
    if split not in ("", "train", "test"):
        raise UserError(f"{where}: split is {split!r}, and must be train or test.")
    options = _options(where, _list(where, "options", cells.get("options")))
    return OwnRow(
        line,
        question,
        _answer(where, answer, options),
        options,
        tuple(_list(where, "aliases", cells.get("aliases"))),
        _text(where, "topic", cells.get("topic")),
        split,
    )


def _text(where: str, name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UserError(f"{where}: {name} must be a text, not {json.dumps(value)[:40]}.")
    if _CONTROL.search(str(value)):
        raise UserError(f"{where}: {name} holds a control character: take it out.")
    return str(value).strip()


def _list(where: str, name: str, value: Any) -> list[str]:
    """A JSON list, or, as in a CSV cell, texts separated by `|`."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise UserError(f"{where}: {name} begins with [ and is no JSON list: mend it, or separate by |.") from None
    elif isinstance(value, str):
        value = value.split("|") if value.strip() else []
    if value is None:
        return []
    if not isinstance(value, list):
        raise UserError(f"{where}: {name} must be a list of texts, not {json.dumps(value)[:40]}.")
    texts = [_text(where, name, each) for each in value]
    if not all(texts):
        raise UserError(f"{where}: one of the {name} is empty: fill it in or take it out.")
    return texts


def _options(where: str, options: list[str]) -> tuple[str, ...]:
    """The options' texts, without letters where the file has put them in front of all."""
    options = [" ".join(option.split()) for option in options]  # each stands on a line of its own
    if options and all(option.startswith(f"{letter}. ") for option, letter in zip(options, LETTERS, strict=False)):
        options = [option[3:] for option in options]
    if len(options) == 1 or len(options) > len(LETTERS):
        raise UserError(f"{where} has {len(options)} options: give 2 to {len(LETTERS)}.")
    if len({folded(option) for option in options}) < len(options):
        raise UserError(f"{where} has an option twice: {' | '.join(options)}.")
    return tuple(options)


def _answer(where: str, answer: str, options: tuple[str, ...]) -> str:
    """The answer; with options the text of the right one, which may be given by its text or its letter."""
    if not options:
        return answer
    wanted = folded(answer)
    for option in options:
        if folded(option) == wanted:
            return option
    for letter, option in zip(LETTERS, options, strict=False):
        if wanted in (letter.lower(), f"{letter.lower()}.", folded(f"{letter}. {option}")):
            return option
    raise UserError(f"{where}: the answer {answer!r} is not among the options {' | '.join(options)}.")


def _check_together(path: Path, rows: list[OwnRow]) -> None:
    """What one row cannot tell: questions that stand twice, columns that are filled in for some rows alone."""
    seen: dict[str, int] = {}
    for row in rows:
        first = seen.setdefault(folded(row.question), row.line)
        if first != row.line:
            raise UserError(
                f"{path}, row at line {row.line} asks the same as the one at line {first}: take one of them out."
            )
    for name in ("options", "split"):
        filled = {bool(getattr(row, name)) for row in rows}
        if len(filled) > 1:
            line = next(row.line for row in rows if not getattr(row, name))
            raise UserError(f"{path}, row at line {line} has no {name}, and others have: give all rows one, or none.")
