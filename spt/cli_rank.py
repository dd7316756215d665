"""`python -m spt rank`: tables of the orders, and the same as JSON or CSV. Imports no torch."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spt.rank_choice import Metric
from spt.ranking import Against, Average, Order, Ranked, Rankings, Score, Span
from spt.spec import UserError
from spt.swaps import places
from spt.view import count, method_title

out = Console()
err = Console(stderr=True)


def rank(
    sources: Annotated[
        list[str] | None,
        typer.Argument(help="run folders, run ids, result.json files, folders of those, CSVs; default: all runs here"),
    ] = None,
    score: Annotated[Metric, typer.Option("--score", help="which score orders the models")] = "exact_match",
    against: Annotated[
        Against, typer.Option("--against", help="the post-trained models' score that is the reference; same = its own")
    ] = "zero_shot",
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="YAML of `base: post-trained` lines, or a sweep's file")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
    table: Annotated[Path | None, typer.Option("--csv", help="also write the orders to this file")] = None,
) -> None:
    """Do base models order as their post-trained twins do? Swap distance, tau and score gap of each method.

    Example: [bold]python -m spt rank --against few_shot --csv orders.csv[/bold]
    """
    from spt.files import replacing
    from spt.rank_choice import choose
    from spt.rank_sources import Reader
    from spt.ranking import rank as ranked

    reader = Reader()
    chosen = choose(reader.read(sources or ()), reader.outcomes, score, pairs)
    rankings = ranked(chosen.scores, chosen.twins, against, score, chosen.notes)
    if table is not None:
        with replacing(table) as file:
            file.write(as_csv(rankings).encode())
    if json:
        sys.stdout.write(rankings.model_dump_json(indent=1) + "\n")
    else:
        show(out, rankings)
    for note in rankings.notes:
        err.print(f"[yellow]{escape(note)}[/yellow]", highlight=False, soft_wrap=True)
    if not rankings.benchmarks:
        raise UserError(too_few(rankings))


def too_few(rankings: Rankings) -> str:
    """What is needed where nothing can be ranked."""
    there = count(len(rankings.twins), "pair")
    return (
        f"There is nothing to rank: {there} of a base and its post-trained model found, and at least two pairs with "
        "finished runs on one benchmark are needed; `python -m spt sweep` makes them, and --pairs says which belong "
        "together."
    )


def show(console: Console, rankings: Rankings) -> None:
    """Two tables for each benchmark and for all of them: the orders, and how near they are."""
    every = [*rankings.benchmarks, *([rankings.overall] if rankings.overall else [])]
    for ranked in every:
        _show_orders(console, rankings, ranked)
        _show_nearness(console, ranked.orders)
    if len(rankings.benchmarks) > 1:
        console.print(f"[bold]Mean over {len(rankings.benchmarks)} benchmarks[/bold]", highlight=False)
        _show_averages(console, rankings.averages)
    if every:
        console.print(escape(explained(rankings)), highlight=False)


def explained(rankings: Rankings) -> str:
    """The words under the numbers, the same here and on the page."""
    reference = "the same method's" if rankings.against == "same" else f"the {method_title(rankings.against).lower()}"
    return (
        f"Reference: {reference} score of the post-trained models; which one it should be is a choice of ours, the "
        "paper's is not known to us. Swap distance: pairs of models in the other order, a tie counts one half. "
        "Intervals: 95 %, items resampled, for all models and methods together; resampling adds noise, so they lean "
        "towards chance. By chance: the probability that a random order is as near or nearer. Mostly ties: more than a "
        "third of the pairs of base models have the same score; too close: their difference is within the 95 % "
        "interval that the items leave. Score gap: post-trained minus base, mean of the pairs."
    )


def _show_orders(console: Console, rankings: Rankings, ranked: Ranked) -> None:
    longest = max(ranked.orders, key=lambda order: len(order.twins))
    items = f", {count(ranked.items, 'item')}" if ranked.items else ""
    head = f"{ranked.benchmark} · {rankings.score.replace('_', ' ')}, {len(longest.twins)} pairs{items}"
    table = Table(title=escape(head), title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("Pair")
    for order in ranked.orders:
        if rankings.against == "same":
            table.add_column(f"post-trained\n{method_title(order.method).lower()}", justify="right")
        table.add_column(f"base\n{method_title(order.method).lower()}", justify="right")
    if rankings.against != "same":
        table.add_column(f"post-trained\n{method_title(rankings.against).lower()}", justify="right")
    names = [name for _, name in sorted(zip([-s.value for s in longest.reference], longest.twins, strict=True))]
    for name in names:
        cells = []
        for order in ranked.orders:
            cells += [_place(order, order.reference, name)] if rankings.against == "same" else []
            cells.append(_place(order, order.base, name))
        if rankings.against != "same":
            cells.append(_place(longest, longest.reference, name))
        table.add_row(escape(name), *cells)
    console.print(table)


def places_of(scores: Sequence[Score]) -> list[float]:
    return [float(place) for place in places([score.value for score in scores])]


def _place(order: Order, scores: Sequence[Score], name: str) -> str:
    """`2 · 41 %`: rank and score; the seeds' range where there are several."""
    if name not in order.twins:
        return "–"
    index = order.twins.index(name)
    score = scores[index]
    spread = f" [dim]{score.low * 100:.0f}–{score.high * 100:.0f}[/dim]" if score.seeds > 1 else ""
    return f"[dim]{places_of(scores)[index]:g} ·[/dim] {score.value * 100:.1f} %{spread}"


def _show_nearness(console: Console, orders: Sequence[Order]) -> None:
    table = Table(box=SIMPLE_HEAD)
    for column in ("Base score", "Swap distance", "95 %", "By chance", "τ-b", "Score gap", "Mark"):
        table.add_column(column)
    for order in orders:
        table.add_row(
            method_title(order.method),
            f"{order.distance.value:g} of {order.pairs} [dim](chance {order.chance:g})[/dim]",
            between(order.distance),
            likely(order.p),
            "–" if order.tau is None else f"{order.tau:+.2f}",
            gap(order.gap),
            crowding(order),
        )
    console.print(table)


def _show_averages(console: Console, averages: Sequence[Average]) -> None:
    table = Table(box=SIMPLE_HEAD)
    for column in ("Base score", "Swap distance", "95 %", "Score gap", "Soft prompt is nearer by"):
        table.add_column(column)
    for average in averages:
        nearer = average.nearer
        table.add_row(
            method_title(average.method),
            f"{average.distance.value:.1f} of {average.pairs:g} [dim](chance {average.chance:g})[/dim]",
            between(average.distance),
            gap(average.gap),
            "" if nearer is None else f"{nearer.value:+.1f}{f' ({between(nearer)})' if nearer.low is not None else ''}",
        )
    console.print(table)


def likely(p: float) -> str:
    """A probability in percent; what rounds to nothing is less than something."""
    return "< 0.1 %" if p < 0.001 else f"{p * 100:.1f} %"


def between(span: Span) -> str:
    """`2–6`, or a dash where there are no answers to resample."""
    return "–" if span.low is None or span.high is None else f"{round(span.low, 1):g} to {round(span.high, 1):g}"


def gap(span: Span | None) -> str:
    """In points, with its interval where there is one."""
    if span is None:
        return "–"
    inside = "" if span.low is None or span.high is None else f" ({span.low * 100:+.1f} to {span.high * 100:+.1f})"
    return f"{span.value * 100:+.1f} points{inside}"


def crowding(order: Order) -> str:
    """What speaks against reading much into an order: `mostly ties (15 of 21)`; empty where nothing does."""
    if not order.mark:
        return ""
    number = order.tied if order.mark == "mostly ties" else order.close
    return f"{order.mark} ({number} of {order.pairs})"


def as_csv(rankings: Rankings) -> str:
    """A line for each pair, benchmark and method; and the distance of that order in each of them."""
    from spt.export import harmless

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        ("benchmark", "method", "pair", "base", "post_trained", "base_score", "reference_score", "base_rank",
         "reference_rank", "gap", "swap_distance", "pairs", "chance", "low", "high", "tau_b", "p_chance", "mark")
    )  # fmt: skip
    twins = {twin.name: twin for twin in rankings.twins}
    for ranked in (*rankings.benchmarks, *([rankings.overall] if rankings.overall else [])):
        for order in ranked.orders:
            base, reference, span = places_of(order.base), places_of(order.reference), order.distance
            for i, name in enumerate(order.twins):
                names = map(harmless, (name, twins[name].base, twins[name].post))
                writer.writerow(
                    (harmless(ranked.benchmark), order.method, *names,
                     order.base[i].value, order.reference[i].value, base[i], reference[i], order.gaps.get(name),
                     span.value, order.pairs, order.chance, span.low, span.high, order.tau, order.p, order.mark)
                )  # fmt: skip
    return text.getvalue()
