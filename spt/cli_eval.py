"""`python -m spt eval`: a stored soft prompt on more items, another benchmark of its form, or another checkpoint."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from spt.console import rate_cell
from spt.files import replacing
from spt.findings import evidence, percent
from spt.metrics import Rate
from spt.preflight import preflight
from spt.spec import UserError
from spt.store import Store
from spt.view import count, duration, method_title

if TYPE_CHECKING:
    from spt.transfer import Done, PromptScores

out = Console()
err = Console(stderr=True)

INTERRUPTED = 130
NAMES = {"format": "Format", "knowledge": "Knowledge", "exact_match": "Exact match"}


def evaluate(
    prompt: Annotated[str, typer.Option("--prompt", help="id of the run whose soft prompt is used")],
    model: Annotated[str | None, typer.Option("--model", help="model to use it on; default: that of the run")] = None,
    revision: Annotated[str | None, typer.Option("--revision", help="branch, tag or commit of a hub model")] = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", help="another one of the same form of answer; default: that of the run")
    ] = None,
    items: Annotated[int | None, typer.Option("--items", help="test items, at most; default: as in the run")] = None,
    force_transfer: Annotated[
        bool, typer.Option("--force-transfer", help="use it on a model it was not tuned for; the result says so")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write the scores as JSON to this file")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the scores as JSON, and progress on stderr")] = False,
) -> None:
    """Answer test items with the stored soft prompt of a run, beside zero-shot answers. Makes no run, is never ranked.

    Vectors mean something in the space of the model they were tuned for alone: on another model or revision this is
    refused, unless it is forced, and on a model of another width always.

    Example: [bold]python -m spt eval --prompt RUN --items 512[/bold]
    """
    folder = Store().get(prompt)
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise UserError(f"{output} cannot be written: give a file in a folder that is there.")
    signal.signal(signal.SIGTERM, _interrupt)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=err if json else out, disable=not (err if json else out).is_terminal,
    )  # fmt: skip
    try:
        with bar:
            task = bar.add_task("Loading", total=None)

            from spt.runner import eval_prompt
            from spt.transfer import METHODS, settings_of  # torch: seconds, so the bar is there first

            spec = settings_of(folder.spec, model, revision, benchmark, items)
            preflight(spec)

            def listen(at: Done) -> None:
                done = at.done + at.total * METHODS.index(at.method)
                bar.update(task, description=f"{method_title(at.method)} answers", completed=done,
                           total=at.total * len(METHODS))  # fmt: skip

            def report(note: str) -> None:
                bar.update(task, description=escape(note))

            found = eval_prompt(folder, spec, force_transfer, listen, report)
    except KeyboardInterrupt:
        (err if json else out).print("Stopped; nothing was written.")
        raise typer.Exit(INTERRUPTED) from None
    text = found.model_dump_json(indent=1) + "\n"
    if output is not None:
        with replacing(output) as file:
            file.write(text.encode())
    if json:
        sys.stdout.write(text)
    else:
        show(out, found)
    if output is not None:
        (err if json else out).print(f"Wrote {escape(str(output.resolve()))}", highlight=False, soft_wrap=True)


def show(console: Console, found: PromptScores) -> None:
    """Scores with intervals and the paired tests; a transfer is named in the title and in a line of its own."""
    items = count(next(iter(found.scores.values())).format.n, "test item")
    title = f"{found.model} on {found.benchmark}, {items}, prompt of {found.prompt}"
    if found.transfer is not None:
        title = f"TRANSFER, not a score of this model's own prompt: {title}"
    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("Method", *NAMES.values()):
        table.add_column(column, no_wrap=True)
    for method, scores in found.scores.items():
        rates: tuple[Rate, ...] = (scores.format, scores.knowledge, scores.exact_match)
        name = method_title(method)
        if found.transfer is not None and method == "soft_prompt":
            name = "Transferred"
        table.add_row(name, *map(rate_cell, rates))
    console.print(table)
    by = next(iter(found.scores.values())).knowledge_by
    console.print(f"In brackets: 95 % Wilson intervals. Knowledge by {by}.", highlight=False)
    for each in found.comparisons:
        r = each.result
        rates_said = f"{percent(r.rate_a)} zero-shot, {percent(r.rate_b)} with the prompt"
        console.print(f"{NAMES[each.metric]}: {rates_said} ({evidence(r)}).", highlight=False)
    if found.transfer is not None:
        line = f"Transfer: the prompt was tuned for {found.transfer.tuned_for} and used on {found.transfer.used_on}."
        console.print(f"[yellow]{escape(line)}[/yellow]", highlight=False, soft_wrap=True)
    if found.tuned_on != found.benchmark:
        console.print(escape(f"The prompt was tuned on {found.tuned_on}."), highlight=False)
    console.print(f"{duration(found.seconds)} on {escape(found.device)}, {escape(found.precision)}.", highlight=False)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
