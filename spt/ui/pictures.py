"""Two pictures of the answers: who knows and who is in format, and which letter answers begin with."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from spt.analysis import OTHER, REFERENCE, Cells
from spt.findings import SETTLED, percent
from spt.spec import METHODS, TUNED_ITEMS, Method
from spt.ui.text import BESIDE, colour, esc, method_note, method_title


def _cell(name: str, number: int, n: int, label: str = "") -> str:
    """A square whose area is the share of items. The four of a method meet in the middle."""
    side = 100 * sqrt(number / n) if n else 0.0
    word = f"<em>{label}</em>" if label else ""
    return (
        f'<div class="cell {name}"><i style="width:{side:.1f}%;height:{side:.1f}%"></i>'
        f"<span><b>{number:,}</b>{word}</span></div>"
    )


def _figure(method: Method, cells: Cells, closed: bool, shots: int) -> str:
    knows, not_known = ("ranks it first", "does not") if closed else ("right", "not right")
    note = method_note(method)
    spoken = (
        f"{method_title(method, shots)}, {cells.n} items: {cells.knows_in} {knows} and in format, "
        f"{cells.knows_out} {knows}, not in format (the format tax), {cells.wrong_in} {not_known}, in format, "
        f"{cells.wrong_out} neither"
    )
    return (
        f'<figure class="cells {colour(method)}" role="img" aria-label="{esc(spoken)}">'
        f"<figcaption>{esc(method_title(method, shots))}{f'<em>{esc(note)}</em>' if note else ''}</figcaption>"
        '<div class="quad" aria-hidden="true"><span></span><span class="col">in format</span>'
        f'<span class="col">not in format</span><span class="row">{knows}</span>'
        f"{_cell('both', cells.knows_in, cells.n)}{_cell('tax', cells.knows_out, cells.n, 'format tax')}"
        f'<span class="row">{not_known}</span>'
        f"{_cell('form', cells.wrong_in, cells.n)}{_cell('neither', cells.wrong_out, cells.n)}</div></figure>"
    )


def squares(cells: Mapping[Method, Cells], closed: bool, shots: int) -> str:
    """Each method's items by knows × in format. Seeds and tuned items fold away."""
    first = [m for m in (*METHODS, *BESIDE) if m in cells]
    rest = [m for m in cells if m not in first and m != TUNED_ITEMS] + [m for m in cells if m == TUNED_ITEMS]
    if not first:
        return ""
    more = ""
    if rest:
        drawn = "".join(_figure(m, cells[m], closed, shots) for m in rest)
        more = (
            '<details class="fold"><summary>Further seeds and tuned items</summary>'
            f'<div class="cells-row">{drawn}</div></details>'
        )
    what = "where the right option ranks first but the answer is out of form" if closed else "right, but out of form"
    return (
        '<section class="card"><h3>Knows it, writes it in format</h3><p class="note">Every test item stands in one '
        "of four squares; areas are shares. The hatched one is the "
        f"<b>format tax</b>: items {what}, which the score counts as wrong.</p>"
        f'<div class="cells-row{" four" if len(first) == 4 else ""}">'
        f"{''.join(_figure(m, cells[m], closed, shots) for m in first)}</div>{more}</section>"
    )


def letters(histograms: Mapping[str, Mapping[str, int]], shots: int) -> str:
    """Closed questions: how often each method begins with each letter. Small models settle on one; this shows it."""
    shown = [name for name in (REFERENCE, *METHODS, *BESIDE) if name in histograms]
    if len(shown) < 2:
        return ""
    blocks = []
    for name in shown:
        histogram, reference = histograms[name], name == REFERENCE
        total = max(1, sum(histogram.values()))
        bars = "".join(
            f'<div class="letter"><span class="stick"><i style="height:{100 * times / total:.1f}%"></i></span>'
            f"<b>{esc(letter)}</b><small>{times}</small></div>"
            for letter, times in histogram.items()
        )
        top = max(histogram, key=lambda letter: histogram[letter])
        settled = not reference and top != OTHER and histogram[top] / total >= SETTLED
        words = f"{percent(histogram[top] / total)} begin with {esc(top)}" if settled else ""
        title, tone = ("Reference", "ref") if reference else (method_title(name, shots), colour(name))
        blocks.append(
            f'<figure class="letters {tone}"><figcaption>{esc(title)}<em>{words}</em></figcaption>'
            f'<div class="sticks">{bars}</div></figure>'
        )
    return (
        '<section class="card"><h3>First letter of the answers</h3><p class="note">Before and after tuning. A model '
        "that cannot tie letters to options settles on one of them: in format, and at chance.</p>"
        f'<div class="letter-row">{"".join(blocks)}</div></section>'
    )
