"""Runs compared, as HTML: headline and key, the table of rates and differences, settings, and the four ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spt.analysis import METRICS as METRIC_NAMES
from spt.analysis import Metric
from spt.compare import MARKS, Cell, Line, Mark, RunComparison, Side, four_ways, shared_items, unfinished
from spt.findings import FEW, percent, too_few
from spt.metrics import Prediction
from spt.presets import model_title
from spt.spec import Method
from spt.stats import ALPHA, PairedDifference
from spt.ui.compare_chart import swatch
from spt.ui.listed import Listed
from spt.ui.live import STATUS
from spt.ui.rates import bar
from spt.ui.text import METRICS, benchmark_title, between, colour, esc, interval, method_title, p_value, points, signed
from spt.view import count

SIGNS: dict[Mark, str] = {"captured": "✓", "not_captured": "◐", "wrong": "✕", "loops": "↻"}
NOTE = (
    "Rates with 95 % Wilson intervals. Below each, in points, its difference to the reference on the items that both "
    "answered, with a bootstrap interval and the p of McNemar’s exact test; p is not corrected for the number of "
    "comparisons. Knowledge is by rule for open questions, also where a run has been judged, and by the ranking of the "
    "options for closed ones."
)


# ---- head and key


def badge(letter: str) -> str:
    """A run's letter in its colour."""
    return f'<span class="badge run-{letter.lower()}">{letter}</span>'


def head(found: RunComparison) -> str:
    """The result in a sentence, what is compared, and which letter is which run."""
    benchmark = benchmark_title(found.benchmark)
    lines = "".join(_line(line, found.reference == line.run) for line in found.runs)
    open_ = unfinished(found)
    alone = [line for line in found.runs if line.alone]
    left = ""
    if alone:
        counted = ", ".join(f"{line.alone:,} of {line.letter}" for line in alone)
        left = f"{count(found.shared, 'item')} answered by all; not by all: {counted}. Paired tests leave those out."
    words = left or f"{count(found.shared, 'item')}, the same for all."
    ids = ",".join(line.run for line in found.runs)
    notes = "".join(f'<p class="sub">{esc(text)}</p>' for text in (f"{benchmark}: {words}", open_) if text)
    return (
        f'<div class="compared" data-compared="{esc(ids)}"><p class="headline">{esc(headline(found))}</p>{notes}'
        f'<ul class="sides">{lines}</ul></div>'
    )


def _line(line: Line, reference: bool) -> str:
    status = "" if line.status == "finished" else f'<span class="pill {line.status}">{STATUS[line.status]}</span>'
    role = "<em>reference</em>" if reference else ""
    return (
        f'<li>{badge(line.letter)}{swatch(line.letter)}<a href="?run={esc(line.run)}" data-open="{esc(line.run)}" '
        f'title="{esc(line.run)}">{esc(line.label)}</a>{role}{status}</li>'
    )


def _called(line: Line) -> str:
    return f"{line.letter} ({line.label})" if len(line.label) <= 30 else line.letter


def headline(found: RunComparison) -> str:
    """What became of the score, by the last method that all runs have been scored with."""
    runs = [line.run for line in found.runs]
    method = next((m for m in reversed(found.methods) if all(found.cell(run, m, "exact_match") for run in runs)), None)
    if method is None:
        return "The runs have no method in common yet."
    cells = [cell for run in runs if (cell := found.cell(run, method, "exact_match")) is not None]
    how = {"soft_prompt": "With the soft prompt", "zero_shot": "Zero-shot", "few_shot": "With examples"}[method]
    if len(cells) > 2:
        ranked = sorted(zip(cells, found.runs, strict=True), key=lambda pair: pair[0].rate.rate)
        (low, worst), (high, best) = ranked[0], ranked[-1]
        return (
            f"{how}, exact match goes from {percent(low.rate.rate)} in {_called(worst)} "
            f"to {percent(high.rate.rate)} in {_called(best)}."
        )
    pair = next((cell.paired for cell in cells if cell.paired), None)
    if pair is None:
        return "The two runs have answered no question in common with the same method yet."
    reference, other = sorted(found.runs, key=lambda line: line.run != found.reference)
    rates = f"{percent(pair.rate_a)} in {_called(reference)} and {percent(pair.rate_b)} in {_called(other)}"
    if pair.n < FEW:
        return f"{too_few(pair.n)}: {how.lower()}, exact match is {rates}."
    if pair.p >= ALPHA:
        return f"{how}, exact match is {rates}: no difference that {pair.n:,} items could tell from none."
    more = "more" if pair.difference > 0 else "fewer"
    return f"{how}, exact match is {rates}: {points(abs(pair.difference))} points {more}."


# ---- rates, differences, settings


def _paired(pair: PairedDifference | None, left_out: int) -> str:
    if pair is None:
        return ""
    sure = " sure" if pair.p < ALPHA else ""
    n = f", n = {pair.n:,}" if left_out else ""
    p = p_value(pair.p) if pair.p < 0.001 else f"= {p_value(pair.p)}"
    return (
        f'<span class="against{sure}"><b>{signed(pair.difference)}</b> ({between(pair.low, pair.high)}), '
        f"<i>p</i>\u00a0{esc(p.replace(' ', chr(160)))}{n}</span>"
    )


def _rate(cell: Cell) -> str:
    rate = cell.rate
    return (
        f'<td data-title="{METRICS[cell.metric]}"><b>{percent(rate.rate)}</b><small>{interval(rate)}</small>'
        f"{bar(rate.low, rate.high, rate.rate)}{_paired(cell.paired, cell.left_out)}</td>"
    )


def rates(found: RunComparison) -> str:
    """Every run by every method, with the difference to the reference under each rate."""
    heads = "".join(f'<th scope="col">{title}</th>' for title in ("n", *METRICS.values()))
    groups = "".join(_group(found, method) for method in found.methods)
    return (
        '<section class="card scores versus"><h3>Rates and differences</h3>'
        f"<table><thead><tr><td></td>{heads}</tr></thead>{groups}</table>"
        f'<p class="note">{NOTE}</p></section>{settings(found)}'
    )


def _group(found: RunComparison, method: Method) -> str:
    rows = []
    for line in found.runs:
        metrics: Sequence[Metric] = METRIC_NAMES
        cells = [cell for metric in metrics if (cell := found.cell(line.run, method, metric)) is not None]
        name = f'<th scope="row">{badge(line.letter)}<span>{esc(line.label)}</span></th>'
        if cells:
            body = f'<td data-title="n">{cells[0].rate.n:,}</td>{"".join(map(_rate, cells))}'
            rows.append(f'<tr class="run-{line.letter.lower()}">{name}{body}</tr>')
        else:
            rows.append(f'<tr class="pending">{name}{"<td>–</td>" * 4}</tr>')
    title = f'<i class="swatch {colour(method)}"></i>{esc(method_title(method))}'
    return f'<tbody><tr class="group"><th colspan="5" scope="rowgroup">{title}</th></tr>{"".join(rows)}</tbody>'


def settings(found: RunComparison) -> str:
    """The settings that are not the same in all runs."""
    if not found.settings:
        return '<p class="note same">All settings of these runs are the same.</p>'
    heads = "".join(f'<th scope="col">{badge(line.letter)}</th>' for line in found.runs)
    rows = "".join(
        f'<tr class=first><th scope="row">{esc(name.replace("_", " "))}</th>'
        + "".join(
            f'<td data-title="{line.letter}">{esc(value)}</td>'
            for line, value in zip(found.runs, values, strict=True)
        )
        + "</tr>"
        for name, values in found.settings.items()
    )
    return (
        '<section class="card settings"><h3>Settings that differ</h3><div class="scroll"><table class="tests">'
        f"<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def curves(found: RunComparison) -> str:
    """Title and key of the chart."""
    keys = "".join(f"<span>{swatch(line.letter)}<b>{line.letter}</b> {esc(line.label)}</span>" for line in found.runs)
    return f'<h3>The curves, one over the other</h3><div class="legend runs-key">{keys}</div>'


# ---- four ways


def mark_html(mark: Mark) -> str:
    """A mark as word, sign and shape."""
    return f'<span class="mark four {mark}"><i aria-hidden="true">{SIGNS[mark]}</i>{MARKS[mark]}</span>'


def ways(base: Side, post: Side, chosen: Mapping[int, Mark]) -> str:
    """Four columns with the counts of their marks; every count is a button that filters the questions below."""
    items = shared_items(base, post)
    closed = any(row.options for row in items.values())
    missed = "the right option ranks first, but the written answer is out of form or another" if closed else (
        "known, but not in the form, so the score misses it"
    )
    columns = []
    for at, way in enumerate(four_ways(base, post)):
        counts = way.counts(items)
        n = sum(counts.values())
        columns.append(
            f'<figure class="way {colour(way.method)}"><figcaption>{esc(way.title)}'
            f"<small>{esc(model_title(way.side.spec.model))}</small></figcaption>"
            f"{_stack(way.title, counts, n)}{_buttons(at, counts, n, chosen.get(at))}</figure>"
        )
    clear = '<button type="button" class="quiet" data-clear>Show all questions</button>' if chosen else ""
    return (
        f'<p class="headline small">{esc(_summary(base, post, items))}</p>'
        f'<div class="ways">{"".join(columns)}</div>'
        f'<p class="note">Each question has one mark a column. <b>{MARKS["captured"].capitalize()}</b>: the benchmark '
        f"counts it. <b>{MARKS['not_captured'].capitalize()}</b>: {missed}. "
        f"<b>{MARKS['loops'].capitalize()}</b>: the answer repeats itself until it is cut off. "
        f"Press a count to see its questions; counts of several columns combine. {clear}</p>"
    )


def _summary(base: Side, post: Side, items: Mapping[str, Prediction]) -> str:
    counts = [way.counts(items) for way in four_ways(base, post)]
    totals = [sum(each.values()) for each in counts]
    if not totals[0] or not totals[2]:
        return "The two models have answered no question in common yet."
    shown = [f"{each['captured']:,}" for each in counts]
    soft = [f", with the soft prompt {shown[i]}" if totals[i] else "" for i in (1, 3)]
    return (
        f"Of {count(len(items), 'question')} the benchmark captures {shown[0]} of the base model{soft[0]}; "
        f"of the post-trained one {shown[2]}{soft[1]}."
    )


def _stack(title: str, counts: Mapping[Mark, int], n: int) -> str:
    spoken = f"{title}: " + ", ".join(f"{number} {MARKS[mark]}" for mark, number in counts.items())
    parts = "".join(
        f'<i class="{mark}" style="flex-grow:{number}"></i>' for mark, number in counts.items() if number
    )
    return f'<div class="stack" role="img" aria-label="{esc(spoken)}">{parts if n else ""}</div>'


def _buttons(column: int, counts: Mapping[Mark, int], n: int, chosen: Mark | None) -> str:
    if not n:
        return '<p class="note">not yet</p>'
    return "".join(
        f'<button type="button" data-mark="{mark}" data-column="{column}" data-key="way-{column}-{mark}" '
        f'aria-pressed="{"true" if mark == chosen else "false"}"{"" if number or mark == chosen else " disabled"}>'
        f'<i aria-hidden="true" class="{mark}">{SIGNS[mark]}</i><span>{MARKS[mark]}</span>'
        f"<b>{number:,}</b><small>{percent(number / n)}</small></button>"
        for mark, number in counts.items()
    )


# ---- before anything is chosen


def one_more(side: Side) -> str:
    """What is still missing where one run is chosen."""
    return f'<p class="sub">Choose another run of {esc(benchmark_title(side.spec.benchmark))} to compare it with.</p>'


def idea(runs: Sequence[Listed], suggestions: Sequence[Sequence[Listed]]) -> str:
    """What this tab is for, and comparisons that are one click away."""
    if not suggestions:
        have = "There is one finished run" if len(runs) == 1 else f"There are {len(runs)} finished runs" if runs else ""
        lack = f"{have}, but no two of one benchmark yet." if have else "There is no finished run yet."
        start = "Start another in the tab Run: another model, seed or setting, on the same benchmark."
        return f'<div class="play-idea"><h2>Compare runs</h2><p class="sub">{lack} {start}</p></div>'
    links = ""
    for group in suggestions:
        ids, models = ",".join(run.id for run in group), " and ".join(model_title(run.spec.model) for run in group)
        links += (
            f'<li><a href="?compare={esc(ids)}" data-compare="{esc(ids)}">'
            f"<b>{esc(benchmark_title(group[0].spec.benchmark))}</b> {esc(models)}</a></li>"
        )
    return (
        '<div class="play-idea"><h2>Compare runs</h2><p class="sub">Two to six runs of one benchmark: what differs, '
        "whether it is more than chance, and every question side by side. A base model and its post-trained one are "
        f'shown four ways, with and without the soft prompt.</p><ul class="suggested">{links}</ul></div>'
    )
