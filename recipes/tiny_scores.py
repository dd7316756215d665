"""What came out of `recipes/tiny-pairs.yaml`: the orders of each seed's six models, their mean, and a figure.

    python -m recipes.tiny_scores --figure tiny-pairs.svg

The figure: base score against twin's score, a panel for each method. Where a base score foretells the twin's, the dots
climb from left to right. Imports no torch.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from spt.cli_rank import show
from spt.ranking import Cell, Key, Order, Ranked, Rankings, Twins, rank
from spt.spec import METHODS, UserError
from spt.store import Store
from spt.sweep import read

COLOURS = ("#0072b2", "#d55e00", "#009e73")  # Okabe and Ito: seen on white and on black
TITLES = {"zero_shot": "zero-shot", "few_shot": "3-shot", "soft_prompt": "soft prompt"}
SIDE, GAP, LEFT, TOP = 200, 24, 52, 34

out = Console()


def rankings(sweep: Path, store: Store) -> Rankings:
    """The orders by seed: each seed stands where a benchmark would. Raises UserError while runs are missing."""
    scores: dict[str, dict[Key, Cell]] = {}
    twins: dict[str, Twins] = {}
    for spec in read(sweep).specs:
        named = re.fullmatch(r"tiny-(\d)(\w)-(Base|Instruct)", Path(spec.model).name)
        if named is None or not store.has_result(spec.run_id):
            raise UserError(f"{spec.model} has no finished run: make the models, then run the sweep {sweep}.")
        seed, letter, _ = named.groups()
        twins[letter] = Twins(letter, f"{letter}-Base", f"{letter}-Instruct")
        folder = store.get(spec.run_id)
        for method in METHODS:
            right = {row.id: row.exact_match for row in folder.predictions(method)}
            outcomes = np.array([right[item] for item in sorted(right)], dtype=float)
            cell = Cell(float(outcomes.mean()), n=len(outcomes), outcomes=outcomes)
            scores.setdefault(f"seed {seed}", {})[f"{letter}-{named[3]}", method] = cell
    return rank(scores, list(twins.values()))


def svg(found: Rankings) -> str:
    """The figure. Text and axes take a grey that is read on white and on black."""
    width, height = LEFT + 3 * (SIDE + GAP), TOP + SIDE + 62
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#7d8590">',
        "<title>Exact match of tiny base models, by method, against that of their fine-tuned twins</title>",
    ]
    for column, method in enumerate(METHODS):
        orders = [(seed, order) for seed in found.benchmarks if (order := seed.order(method)) is not None]
        parts += _panel(LEFT + column * (SIDE + GAP), column == 0, TITLES[method], orders)
    for place, seed in enumerate(found.benchmarks):
        x = LEFT + place * 80
        parts.append(f'<circle cx="{x + 5}" cy="{height - 10}" r="5" fill="{COLOURS[place]}"/>')
        parts.append(f'<text x="{x + 15}" y="{height - 6}">{seed.benchmark}</text>')
    return "\n".join((*parts, "</svg>\n"))


def _panel(left: int, first: bool, title: str, orders: list[tuple[Ranked, Order]]) -> list[str]:
    mean = float(np.mean([order.distance.value for _, order in orders]))
    middle, foot = left + SIDE / 2, TOP + SIDE
    parts = [
        f'<text x="{middle}" y="14" text-anchor="middle" font-weight="600">{title}</text>',
        f'<text x="{middle}" y="28" text-anchor="middle" font-size="11">'
        f"{mean:.1f} of {orders[0][1].pairs} swaps away, chance {orders[0][1].chance:g}</text>",
        f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#7d8590" stroke-opacity=".5"/>',
        f'<path d="M{left} {foot}L{left + SIDE} {TOP}" stroke="#7d8590" stroke-opacity=".5" stroke-dasharray="3 4"/>',
        f'<text x="{middle}" y="{foot + 32}" text-anchor="middle">base model, {title}, %</text>',
    ]
    for tick in (0, 50, 100):
        at = SIDE * tick / 100
        parts.append(f'<text x="{left + at}" y="{foot + 15}" text-anchor="middle" font-size="11">{tick}</text>')
        if first:
            parts.append(f'<text x="{left - 6}" y="{foot - at + 4}" text-anchor="end" font-size="11">{tick}</text>')
    if first:
        parts.append(
            f'<text transform="translate(14 {TOP + SIDE / 2}) rotate(-90)" text-anchor="middle">'
            "fine-tuned twin, %</text>"
        )
    for colour, (_, order) in zip(COLOURS, orders, strict=False):
        for name, base, post in zip(order.twins, order.base, order.reference, strict=True):
            x, y = left + SIDE * base.value, foot - SIDE * post.value
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}" fill-opacity=".85">'
                f"<title>{name}: base {base.value:.0%}, twin {post.value:.0%}</title></circle>"
            )
    return parts


def main(
    sweep: Annotated[Path, typer.Option(help="the sweep's file")] = Path("recipes/tiny-pairs.yaml"),
    figure: Annotated[Path | None, typer.Option(help="also draw the figure, as SVG, into this file")] = None,
) -> None:
    """Show how near the base models' orders are to their twins', for each seed and in the mean."""
    try:
        found = rankings(sweep, Store())
    except UserError as error:
        out.print(f"[red]{error}[/red]", highlight=False)
        raise typer.Exit(2) from None
    show(out, found)
    if figure is not None:
        figure.write_text(svg(found), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
