"""What the Rankings tab says and draws beside its charts: the headline, the orders as lines that cross, the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from spt.cli_rank import between, crowding, explained, gap, likely, places_of
from spt.findings import percent
from spt.rank_curves import Course
from spt.ranking import OVERALL, Order, Ranked, Rankings, Score
from spt.ui.rank_charts import spoken
from spt.ui.text import benchmark_title, colour, esc, method_title
from spt.view import count

ROW, LEFT, RIGHT, WIDE = 27, 166, 248, 414  # of the picture of two orders, in its own units
LONGEST = 15  # letters of a name in it

SWEEP = """models:
  - pair: {base: Qwen/Qwen2.5-0.5B, post_trained: Qwen/Qwen2.5-0.5B-Instruct}
  - pair: {base: Qwen/Qwen3-0.6B-Base, post_trained: Qwen/Qwen3-0.6B}
  - pair: {base: HuggingFaceTB/SmolLM2-360M, post_trained: HuggingFaceTB/SmolLM2-360M-Instruct}
benchmarks: [arc_easy, gsm8k]"""
COMMAND = "python -m spt sweep sweep.yaml"


def title(benchmark: str) -> str:
    return "All benchmarks" if benchmark == OVERALL else benchmark_title(benchmark)


def headline(rankings: Rankings, ranked: Ranked | None) -> str:
    """The finding in one sentence, and what stands behind it."""
    if ranked is None:
        return (
            '<div class="rank-head"><p class="headline">Does the soft-prompted base model foretell its post-trained '
            "twin?</p></div>"
        )
    soft = ranked.order("soft_prompt")
    first = soft or ranked.orders[0]
    others = [order for order in ranked.orders if order is not first]
    rest = ", ".join(f"{method_title(o.method).lower()} {swaps(o.distance.value)}" for o in others)
    how = "with the soft prompt" if first is soft else method_title(first.method).lower()
    where = "" if ranked.benchmark == OVERALL or len(rankings.benchmarks) < 2 else f"On {title(ranked.benchmark)}, base"
    near = f"{swaps(first.distance.value)} of {first.pairs} swaps"
    sentence = (
        f"{where or 'Base'} models scored {how} stand {near} from the order of their"
        f" post-trained twins{f'; {rest}' if rest else ''}. Chance: {first.chance:g}."
    )
    items = f", {count(ranked.items, 'test item')}" if ranked.items else ""
    over = f", mean of {count(len(rankings.benchmarks), 'benchmark')}" if ranked.benchmark == OVERALL else ""
    return (
        f'<div class="rank-head"><p class="headline" role="status">{esc(sentence)}</p>'
        f'<p class="sub">{count(len(first.twins), "pair")}{over}{items}, '
        f"{rankings.score.replace('_', ' ')}.</p></div>"
    )


def swaps(value: float) -> str:
    """`3½`: halves come from ties."""
    whole, half = divmod(round(value * 2), 2)
    if abs(value * 2 - round(value * 2)) > 1e-9:
        return f"{value:.1f}"
    return f"{whole or ''}½" if half else str(whole)


def needed(rankings: Rankings) -> str:
    """What a ranking needs and how to make it; empty where there are three pairs or more."""
    most = max((len(order.twins) for ranked in rankings.benchmarks for order in ranked.orders), default=0)
    if most >= 3:
        return ""
    there = (
        f"There {'is' if len(rankings.twins) == 1 else 'are'} {count(len(rankings.twins), 'pair')} here so far"
        if rankings.twins
        else "There is no pair here yet"
    )
    more = " Two pairs have one order or the other: the numbers below say next to nothing." if most == 2 else ""
    return (
        '<section class="card rank-needed"><h3>A ranking needs pairs of models</h3>'
        "<p>Each pair is a base model and what post-training made of it. Both are run on the same benchmark, with the "
        f"same settings. {there}; with three or more this page shows whether the base models’ scores order them as "
        f"their twins are ordered.{more}</p>"
        f"<p>A sweep makes the runs, one after the other, and goes on where it was stopped:</p>"
        f'<pre>{esc(SWEEP)}</pre><div class="command"><div class="box"><code>{esc(COMMAND)}</code>'
        '<button type="button" class="quiet" data-copy>copy</button></div></div>'
        '<p class="note">Pairs are told from names (X-Base and X, X and X-Instruct, X-it, X-chat). Others can be '
        "written into <code>pairs.yaml</code> in SPT_HOME, a line each: <code>base: post-trained</code>.</p>"
        "</section>"
    )


# ---- two orders side by side


def orders(rankings: Rankings, ranked: Ranked) -> str:
    """For each method the base models' order beside the reference: every crossing is a swap."""
    reference = "with the same method" if rankings.against == "same" else method_title(rankings.against).lower()
    figures = "".join(_slopes(order) for order in ranked.orders)
    return (
        '<section class="card orders"><h3>Two orders, line by line</h3><p class="note">Left the base models by their '
        f"score, right their post-trained twins ({esc(reference)}). Every crossing is a swap. Models in one box have "
        f'the same score: they share their places, and count one half.</p><div class="slopes">{figures}</div></section>'
    )


def _slopes(order: Order) -> str:
    base, reference = places_of(order.base), places_of(order.reference)
    height = ROW * len(order.twins) + 8
    lines = "".join(
        f'<line class="{"same" if one == other else "moved"}" x1="{LEFT}" y1="{_y(one):.1f}" x2="{RIGHT}" '
        f'y2="{_y(other):.1f}"/>'
        for one, other in sorted(zip(base, reference, strict=True), key=lambda place: place[0] != place[1])
    )
    shown = f"{swaps(order.distance.value)} of {order.pairs}"
    mark = f'<span class="mark plain">{esc(order.mark)}</span>' if order.mark else ""
    return (
        f'<figure class="slope {colour(order.method)}"><figcaption><i class="swatch {colour(order.method)}"></i>'
        f"{esc(method_title(order.method))}<em>{shown}</em>{mark}</figcaption>"
        f'<svg viewBox="0 0 {WIDE} {height}" role="img" aria-label="{esc(spoken(order))}">{lines}'
        f"{_side(order.twins, order.base, base, left=True)}{_side(order.twins, order.reference, reference, left=False)}"
        "</svg></figure>"
    )


def _y(place: float) -> float:
    return ROW * (place - 0.5) + 4


def _side(names: Sequence[str], scores: Sequence[Score], places: Sequence[float], left: bool) -> str:
    """Names and scores down one side, and a box around those that tie."""
    order = sorted(range(len(names)), key=lambda i: (places[i], names[i]))
    parts = []
    for row, i in enumerate(order, start=1):
        if places.count(places[i]) > 1 and (row == 1 or places[order[row - 2]] != places[i]):
            tall = ROW * places.count(places[i]) - 5
            x = 1 if left else RIGHT + 4
            y = _y(row) - ROW / 2 + 2.5
            parts.append(f'<rect class="tie" x="{x}" y="{y:.1f}" width="{LEFT - 5}" height="{tall}" rx="6"/>')
    for row, i in enumerate(order, start=1):
        name = names[i] if len(names[i]) <= LONGEST else f"{names[i][: LONGEST - 1]}…"
        x, anchor = (LEFT - 11, "end") if left else (RIGHT + 11, "start")
        number = f'<tspan class="number">{percent(scores[i].value)}</tspan>'
        text = f"{esc(name)}&#160; {number}" if left else f"{number}&#160; {esc(name)}"
        parts.append(
            f'<text x="{x}" y="{_y(row) + 4.5:.1f}" text-anchor="{anchor}">{text}<title>{esc(names[i])}: '
            f"{scores[i].value * 100:.1f} %{_seeds(scores[i])}</title></text>"
        )
    return "".join(parts)


def _seeds(score: Score) -> str:
    if score.seeds < 2:
        return ""
    return f", {score.seeds} seeds, {score.low * 100:.1f} to {score.high * 100:.1f} %"


# ---- numbers


def numbers(ranked: Ranked) -> str:
    """A row for each method: distance with its interval on a scale whose middle is chance, tau, p, gap, mark."""
    heads = ("Swap distance", "τ-b", "By chance", "Score gap", "")
    body = "".join(_row(order) for order in ranked.orders)
    return (
        f'<section class="card rank-numbers"><h3>How near they are</h3><div class="scroll"><table class="tests"><thead>'
        f"<tr><td></td>{''.join(f'<th scope=col>{head}</th>' for head in heads)}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></section>"
    )


def _row(order: Order) -> str:
    span, pairs = order.distance, order.pairs or 1
    inside = between(span)
    interval = ""
    if span.low is not None and span.high is not None:
        left, width = 100 * span.low / pairs, 100 * (span.high - span.low) / pairs
        interval = f'<i class="span" style="left:{left:.1f}%;width:{width:.1f}%"></i>'
    strip = (
        f'<span class="strip" aria-hidden="true"><i class="zero-line"></i>{interval}'
        f'<i class="dot" style="left:{100 * span.value / pairs:.1f}%"></i></span>'
    )
    said = f" <small>95 %: {inside}</small>" if interval else ' <small title="no answers to resample">95 %: –</small>'
    tau = "–" if order.tau is None else f"{order.tau:.2f}".replace("-", "−")
    crowded = crowding(order)
    mark = f'<span class="mark plain">{esc(crowded)}</span>' if crowded else ""
    return (
        f'<tr class="first"><th scope="row"><i class="swatch {colour(order.method)}"></i>'
        f"{esc(method_title(order.method))}</th>"
        f'<td data-title="Swap distance"><b>{swaps(span.value)}</b> of {order.pairs}{said}{strip}</td>'
        f'<td data-title="τ-b">{tau}</td><td data-title="By chance">{esc(likely(order.p))}</td>'
        f'<td data-title="Score gap">{esc(gap(order.gap).replace("-", "−"))}</td><td>{mark}</td></tr>'
    )


def notes(rankings: Rankings) -> str:
    """How the numbers are made, and what was left out."""
    left = ""
    if rankings.notes:
        lines = "".join(f"<li>{esc(note)}</li>" for note in rankings.notes)
        left = (
            f'<details class="fold"><summary>{count(len(rankings.notes), "remark")} on what was left out'
            f"</summary><ul>{lines}</ul></details>"
        )
    return f'<section class="rank-notes"><p class="note">{esc(explained(rankings))}</p>{left}</section>'


def nearer(rankings: Rankings) -> str:
    """How much nearer the soft prompt is than each other method, with an interval of the difference itself."""
    parts = []
    for average in rankings.averages:
        if average.nearer is not None:
            span = average.nearer
            inside = f" (95 %: {between(span)})".replace("-", "−") if span.low is not None else ""
            amount = f"{abs(span.value):.1f} {'nearer' if span.value > 0 else 'farther'} than"
            word = "as near as" if abs(span.value) < 0.05 else amount
            parts.append(f"{word} {method_title(average.method).lower()}{inside}")
    return f"Mean of the benchmarks: the soft prompt is {' and '.join(parts)}." if parts else ""


def curves_head(found: dict[bool, Course]) -> str:
    behind = "; ".join(
        f"{'closed' if closed else 'open'}: {count(c.models, 'model')}, {count(c.runs, 'run')}"
        for closed, c in found.items()
    )
    return (
        "<h3>Format and knowledge, step by step</h3>"
        f'<p class="note">With the soft prompt, mean over base and post-trained models ({esc(behind)}).</p>'
        '<div class="legend rank-legend"><span class="soft"><i></i>Format following</span>'
        '<span class="known"><i></i>Knowledge</span><span class="ci"><i></i>95 % over models</span></div>'
    )
