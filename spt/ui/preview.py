"""The preview on the page: five rows as the model will see them, before anything runs.

Rows that are here and small are read in this process. Others are read by a process of their own: libraries that read
them are heavy, and a page that has read 200 MB would keep the memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from spt import model_files
from spt.benchmarks import BUNDLED, is_own_file, rows_are_here
from spt.preflight import preflight
from spt.preview import Preview, PreviewRow, preview
from spt.spec import RunSpec, UserError
from spt.ui.text import benchmark_title, esc
from spt.view import count

QUICK = 2_000_000  # bytes of a file that is read at once
PATIENCE = 300  # seconds; a data set may have to be downloaded
LONGEST = 1500  # characters of a row that are shown
_ROOT = Path(__file__).resolve().parents[2]
_adapter: TypeAdapter[Preview] = TypeAdapter(Preview)


class _Answer(BaseModel):
    """What the other process says: the preview, or the sentence in its place."""

    found: Preview | None = None
    problem: str = ""


def is_quick(spec: RunSpec) -> bool:
    """Whether the rows are read within a blink."""
    if not is_own_file(spec.benchmark):
        return spec.benchmark in BUNDLED
    try:
        return Path(spec.benchmark).stat().st_size < QUICK
    except OSError:
        return True  # says what is wrong


def read(spec: RunSpec) -> Preview:
    """The preview of a spec. Raises UserError as the run itself would; an upload goes by the name it came with."""
    stored, given = Path(spec.benchmark).name, benchmark_title(spec.benchmark)
    try:
        found = preview(spec) if is_quick(spec) else _elsewhere(spec)
    except UserError as error:
        raise _by_given_name(error, spec) from None
    return replace(found, title=found.title.replace(stored, given), source=found.source.replace(stored, given))


def check(spec: RunSpec) -> None:
    """`preflight` for the page. Raises UserError as `read` does."""
    try:
        if is_quick(spec) or not rows_are_here(spec):
            preflight(spec)
        else:
            model_files.check(spec.model, spec.revision, spec.precision)
            _elsewhere(spec)
    except UserError as error:
        raise _by_given_name(error, spec) from None


def require_usable(file: Path, settings: Mapping[str, Any]) -> None:
    """Raises UserError for a file of questions that can be used in no format.

    The form's settings come first; a file that only another format takes is no wrong file, as the settings can be
    mended when it is chosen.
    """
    first: UserError | None = None
    for changes in (settings, *({"answer_format": kind} for kind in (None, "hash", "phrase", "boxed"))):
        try:
            read(RunSpec.parse(benchmark=str(file), **changes))
            return
        except UserError as error:
            first = first or error
    assert first is not None
    raise first


def _by_given_name(error: UserError, spec: RunSpec) -> UserError:
    """An upload goes by the name it came with."""
    return UserError(str(error).replace(spec.benchmark, benchmark_title(spec.benchmark)))


def _elsewhere(spec: RunSpec) -> Preview:
    paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "spt.ui.preview"],
            input=spec.model_dump_json(),
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        answer = _Answer.model_validate_json(ran.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise UserError(f"The rows of {spec.benchmark} were not there within {PATIENCE // 60} minutes.") from None
    except (subprocess.CalledProcessError, ValueError, IndexError):
        raise UserError(f"The rows of {spec.benchmark} could not be read: `python -m spt preview` says why.") from None
    if answer.found is None:
        raise UserError(answer.problem)
    return answer.found


def main() -> None:
    """Read a spec on stdin, and write what there is to say as the last line of stdout."""
    spec = RunSpec.model_validate_json(sys.stdin.read())
    try:
        answer = _Answer(found=preview(spec))
    except UserError as error:
        answer = _Answer(problem=str(error))
    print(answer.model_dump_json())


def reading_html(benchmark: str) -> str:
    return f'<section class="card preview"><p class="note">Reading the rows of {esc(benchmark)} …</p></section>'


def problem_html(message: str) -> str:
    return (
        '<section class="card preview"><h3>Rows as the model will see them</h3>'
        f'<div class="problem" role="alert"><b>Not possible.</b> {esc(message)}</div></section>'
    )


def html(found: Preview) -> str:
    """Counts, what was dropped and why, and the rows with the target marked."""
    lead = _shared_lead(found.rows)
    rows = "".join(_row(row, lead, first=i == 0) for i, row in enumerate(found.rows))
    dropped = sum(found.dropped.values())
    reasons = "".join(f"<li>{esc(reason)}: {number:,}</li>" for reason, number in found.dropped.items())
    why = ""
    if reasons:
        why = f'<details class="fold"><summary>Why rows were dropped</summary><ul>{reasons}</ul></details>'
    topics = ""
    if found.topics:
        names = ", ".join(found.topics[:12]) + (f" and {len(found.topics) - 12} more" if len(found.topics) > 12 else "")
        topics = f'<p class="note">Topics: {esc(names)}.</p>'
    numbers = (("Train", found.train), ("Test", found.test), ("Dropped", dropped))
    counts = "".join(f"<div><dt>{name}</dt><dd>{number:,}</dd></div>" for name, number in numbers)
    kind = "options are listed" if found.closed else "open-ended"
    return (
        f'<section class="card preview"><h3>{esc(found.title)}</h3>'
        f'<p class="note">{count(len(found.rows), "training row")} as the model will see them; <mark>marked</mark> is '
        f"what it has to write. Format: {esc(found.format)}, {kind}. Source: {esc(found.source)}. "
        f'Licence: {esc(found.licence)}.</p><dl class="facts">{counts}</dl>{why}{topics}'
        f'<ol class="rows">{rows}</ol></section>'
    )


def _shared_lead(rows: tuple[PreviewRow, ...]) -> str:
    """The instruction in front of every row."""
    shortest = min((row.context for row in rows), key=len, default="")
    end = next((i for i, char in enumerate(shortest) if any(row.context[i] != char for row in rows)), 0)
    end = shortest.rfind("\n\n", 0, end)
    return shortest[: end + 2] if end > 0 else ""


def _row(row: PreviewRow, lead: str, first: bool) -> str:
    text = row.context.removeprefix(lead)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n…\n{text[-LONGEST // 2 :]}"
    said = lead if first else "⋯ the same instruction\n\n"
    instruction = f'<span class="lead">{esc(said)}</span>' if lead else ""
    topic = f'<span class="topic">{esc(row.topic)}</span>' if row.topic else ""
    return f'<li>{topic}<p class="answer-text">{instruction}{esc(text)}<mark>{esc(row.target)}</mark></p></li>'


if __name__ == "__main__":
    main()
