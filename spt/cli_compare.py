"""`python -m spt compare RUN RUN …`: the table of differences, on a terminal or as JSON."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spt.analysis import METRICS, Metric
from spt.compare import (
    MARKS,
    Cell,
    RunComparison,
    Side,
    check_ids,
    check_specs,
    compare_runs,
    find_pair,
    four_ways,
    shared_items,
    unfinished,
)
from spt.store import Store
from spt.view import count, method_title

out = Console()
err = Console(stderr=True)
NOTE = (
    "Rates with 95 % Wilson intervals. Under them, in points, the difference to the reference on the same items, with "
    "a bootstrap interval and McNemar's exact p, which is not corrected for the number of comparisons."
)
TITLES: dict[Metric, str] = {"format": "Format", "knowledge": "Knowledge", "exact_match": "Exact match"}


def compare(
    runs: Annotated[list[str], typer.Argument(help="ids of two to six runs; the first is the reference")],
    json: Annotated[bool, typer.Option("--json", help="print the comparison as JSON")] = False,
) -> None:
    """Compare runs of one benchmark item by item: rates, paired differences to the first, settings that differ.

    Example: [bold]python -m spt compare RUN RUN[/bold]
    """
    check_ids(runs)
    store = Store()
    folders = [store.get(run) for run in runs]
    check_specs([folder.spec for folder in folders])
    sides = [Side.of(folder) for folder in folders]
    found = compare_runs(sides)
    if sentence := unfinished(found):
        err.print(f"[yellow]{escape(sentence)}[/yellow]", highlight=False, soft_wrap=True)
    if json:
        sys.stdout.write(found.model_dump_json(indent=1) + "\n")
    else:
        _show(found, sides)


def _show(found: RunComparison, sides: list[Side]) -> None:
    for line in found.runs:
        note = " [dim](reference)[/dim]" if line.run == found.reference else ""
        alone = f", {line.alone} not answered by all" if line.alone else ""
        out.print(f"[bold]{line.letter}[/bold] {escape(line.label)}{note} [dim]{line.run}, "
                  f"{count(line.items, 'item')}{alone}[/dim]", highlight=False, soft_wrap=True)  # fmt: skip
    if found.settings:
        _settings(found)
    for method in found.methods:
        table = Table(title=method_title(method), box=SIMPLE_HEAD, title_justify="left", pad_edge=False,
                      collapse_padding=True)  # fmt: skip
        for title in ("Run", "n", *TITLES.values()):
            table.add_column(title, no_wrap=True)
        for line in found.runs:
            cells = [cell for metric in METRICS if (cell := found.cell(line.run, method, metric)) is not None]
            if cells:
                table.add_row(line.letter, f"{cells[0].rate.n:,}", *map(_cell, cells))
        out.print(table)
    out.print(NOTE, highlight=False)
    if (pair := find_pair(sides)) is not None:
        _four(*pair)


def _settings(found: RunComparison) -> None:
    table = Table("Setting", *(line.letter for line in found.runs), box=SIMPLE_HEAD, pad_edge=False)
    for name, values in found.settings.items():
        table.add_row(*map(escape, (name.replace("_", " "), *values)))
    out.print(table)


def _cell(cell: Cell) -> str:
    rate, pair = cell.rate, cell.paired
    words = f"{rate.rate:.2f} [dim]\\[{rate.low:.2f}, {rate.high:.2f}][/dim]"
    if pair is not None:
        n = f", n {pair.n}" if cell.left_out else ""
        p = "p < 0.001" if pair.p < 0.001 else f"p {pair.p:.3f}"
        points, low, high = (f"{round(share * 100):+d}" for share in (pair.difference, pair.low, pair.high))
        words += f"\n{points} \\[{low}, {high}]\n[dim]{p}{n}[/dim]"
    return words


def _four(base: Side, post: Side) -> None:
    items = shared_items(base, post)
    table = Table("Four ways", *MARKS.values(), box=SIMPLE_HEAD, pad_edge=False)
    for way in four_ways(base, post):
        table.add_row(way.title, *(f"{number:,}" for number in way.counts(items).values()))
    out.print(table)
