"""The table of all runs: which rows a page shows, in which order, and the HTML of each. Pure; no Gradio."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from spt.findings import percent
from spt.metrics import Rate
from spt.presets import model_title
from spt.spec import METHODS, Method, RunSpec
from spt.store import Status
from spt.ui.listed import Listed, RunList
from spt.ui.live import STATUS
from spt.ui.page import BUTTONS
from spt.ui.text import METRICS, benchmark_title, colour, esc, method_title, short_model
from spt.view import count, duration

MORE = 50  # rows that are shown at first, and added by a click
WIDTH, HEIGHT = 96, 28  # of a sparkline, in pixels
UNREADABLE = "Unreadable"


@dataclass(frozen=True)
class Column:
    """A column that can be sorted: by `key`, where None stands last; `down` = the largest first when it is clicked."""

    title: str
    key: Callable[[Listed], Any]
    down: bool = False


def _rate(metric: str) -> Callable[[Listed], float | None]:
    def key(run: Listed) -> float | None:
        soft = run.scores.get("soft_prompt")
        return getattr(soft.shown, metric).rate if soft else None

    return key


COLUMNS: dict[str, Column] = {
    "benchmark": Column("Benchmark", lambda run: benchmark_title(run.spec.benchmark).lower()),
    "model": Column("Model", lambda run: model_title(run.spec.model).lower()),
    "status": Column("Status", lambda run: status_word(run)),
    "format": Column("Format", _rate("format"), down=True),
    "knowledge": Column("Knowledge", _rate("knowledge"), down=True),
    "exact_match": Column("Exact match", _rate("exact_match"), down=True),
    "duration": Column("Took", lambda run: run.seconds, down=True),
    "changed": Column("Changed", lambda run: run.changed, down=True),
}


@dataclass
class View:
    """What one open page has asked of the table, and the rows it has."""

    query: str = ""
    by: str = "changed"
    down: bool = True
    most: int = MORE
    asked: str = ""  # the run that may be deleted with a second click
    chosen: tuple[str, ...] = ()
    sent: dict[str, str] = field(default_factory=dict)  # rows by the id of their run
    state: dict[str, Any] = field(default_factory=dict)  # the rest of the last message

    def sort(self, by: str) -> None:
        """By another column, or by this one the other way round."""
        self.by, self.down = by, not self.down if by == self.by else COLUMNS[by].down


def settings(spec: RunSpec) -> list[str]:
    """What tells a run from others of its model and benchmark: the settings that are not the defaults."""
    words = []
    for name, about in RunSpec.model_fields.items():
        value = getattr(spec, name)
        if name in ("model", "benchmark", "items") or value == about.default:  # items: the number stands at the score
            continue
        shown = ", ".join(value) if isinstance(value, tuple) else short_model(str(value))
        words.append(f"{name.replace('_', ' ')} {shown}")
    return words


def status_word(run: Listed) -> str:
    return UNREADABLE if run.problem else STATUS[run.status]


def found(runs: Sequence[Listed], query: str) -> list[Listed]:
    """The runs that have every word of the query in benchmark, model, status, settings or id, in any order."""
    words = query.lower().split()

    def text(run: Listed) -> str:
        spec = run.spec
        parts = (benchmark_title(spec.benchmark), spec.benchmark, spec.model, model_title(spec.model))
        return " ".join((*parts, status_word(run), *settings(spec), run.id)).lower()

    return [run for run in runs if all(word in text(run) for word in words)] if words else list(runs)


def ordered(runs: Sequence[Listed], by: str, down: bool) -> list[Listed]:
    """Sorted by a column; runs that have nothing there stand last either way."""
    key = COLUMNS[by].key
    return sorted((r for r in runs if key(r) is not None), key=key, reverse=down) + [r for r in runs if key(r) is None]


def message(listed: RunList, view: View, may_change: Callable[[str], bool]) -> dict[str, Any]:
    """What `runs.js` needs to bring a page's table up to date: the order of all its rows, and the rows it has not."""
    kept = ordered(found(listed.runs, view.query), view.by, view.down)
    words = view.query.lower().split()
    broken = [name for name in listed.problems if all(word in f"{name} unreadable".lower() for word in words)]
    rows = {run.id: row(run, view.asked == run.id, may_change(run.id)) for run in kept[: view.most]}
    if len(kept) <= view.most:  # folders that are no runs have no time: they stand behind all others
        rows |= {name: broken_row(name, listed.problems[name]) for name in broken}
    fresh = {name: html for name, html in rows.items() if view.sent.get(name) != html}
    view.sent |= fresh
    left = len(kept) - view.most
    return {
        "order": list(rows),
        "rows": fresh,
        "by": view.by,
        "down": view.down,
        "count": _count(len(kept) + len(broken), len(listed.runs) + len(listed.problems), len(broken)),
        "more": f"Show {min(left, MORE)} more of {left:,}" if left > 0 else "",
        "choice": choice(listed.runs, view.chosen),
    }


def _count(shown: int, every: int, broken: int) -> str:
    """How many rows there are, in words."""
    if not every:
        return "No runs yet: press Start in the tab Run, and each run is kept here."
    if not shown:
        return "No run has all these words in its model, benchmark, status, settings or id."
    unread = f", {broken:,} of them unreadable" if broken else ""
    return f"{count(every, 'run')}{unread}" if shown == every else f"{shown:,} of {count(every, 'run')}{unread}"


def shell() -> str:
    """The table without rows; `runs.js` fills it. Its buttons say in `data-ask` what they ask of the server."""
    heads = "".join(
        f'<th scope="col" class="{name}" data-by="{name}">'
        f'<button type="button" data-ask="sort" data-run="{name}">{column.title}</button></th>'
        for name, column in COLUMNS.items()
    )
    curve = '<th scope="col" class="curve">Curve</th>'
    at = heads.index('<th scope="col" class="duration"')
    key = "".join(
        f'<span class="{colour(method)}"><i></i>{esc(method_title(method))}</span>' for method in reversed(METHODS)
    )
    return (
        '<div class="all-runs"><div class="table-head"><p class="count" role="status"></p>'
        f'<div class="key" aria-hidden="true">{key}</div></div>'
        '<div class="choice" role="status"></div>'
        '<table><caption class="unseen">All runs; the headings of the columns sort them</caption>'
        f'<thead><tr><th scope="col" class="choose"><span class="unseen">Compare</span></th>{heads[:at]}{curve}'
        f'{heads[at:]}<th scope="col" class="acts"><span class="unseen">Actions</span></th></tr></thead>'
        '<tbody></tbody></table><button type="button" class="quiet more" data-ask="more" hidden></button></div>'
    )


def row(run: Listed, asked: bool, may_change: bool) -> str:
    """One run as a row of the table, and on a phone as a card."""
    spec, name = run.spec, esc(run.id)
    title = f"{benchmark_title(spec.benchmark)}, {model_title(spec.model)}"
    state = "failed" if run.problem else run.status
    soft = run.scores.get("soft_prompt")
    words = ([f"n = {soft.format.n:,}"] if soft else []) + settings(spec)
    how = f"<small>{' · '.join(f'<span>{esc(word)}</span>' for word in words)}</small>" if words else ""
    head = (
        f'<td class="choose"><input type="checkbox" data-key="choose-{name}" value="{name}" '
        f'aria-label="Choose {esc(title)} to compare"></td>'
        f'<th scope="row" class="benchmark"><a href="?run={name}" data-open="{name}" data-key="open-{name}" '
        f'title="{name}">{esc(benchmark_title(spec.benchmark))}</a>{how}</th>'
        f'<td class="model">{esc(model_title(spec.model))}</td>'
        f'<td class="status"><span class="pill {state}">{status_word(run)}</span></td>'
    )
    body = f'<td class="sentence" colspan="4">{esc(run.problem)}</td>'
    if not run.problem:
        body = "".join(_score(run, metric) for metric in METRICS)
        body += f'<td class="curve" data-title="Curve">{sparkline(run)}</td>'
    return f"<tr>{head}{body}{_times(run)}<td class=\"acts\">{_actions(run, asked, may_change)}</td></tr>"


def broken_row(name: str, problem: str) -> str:
    """A folder that is no run this version can read, with the sentence that says what to do."""
    return (
        f'<tr><td class="choose"></td><th scope="row" class="benchmark">{esc(name)}</th><td class="model"></td>'
        f'<td class="status"><span class="pill failed">{UNREADABLE}</span></td>'
        f'<td class="sentence" colspan="{len(COLUMNS) - 1}">{esc(problem)}</td></tr>'
    )


def _times(run: Listed) -> str:
    took = duration(run.seconds) if run.seconds is not None else ""
    if run.seconds is None and not run.problem and run.step:
        took = f"step {run.step} of {run.spec.steps}"
    when = datetime.fromtimestamp(run.changed, UTC)
    # `runs.js` puts it into the words and the time zone of the reader.
    return (
        f'<td class="duration" data-title="Took">{took}</td><td class="changed" data-title="Changed">'
        f'<time datetime="{when.isoformat(timespec="seconds")}">{when:%Y-%m-%d %H:%M} UTC</time></td>'
    )


def _score(run: Listed, metric: str) -> str:
    """The soft prompt's rate as a number; all three methods as marks on a line from 0 to 1, and in words."""
    rates: dict[Method, Rate] = {m: getattr(s.shown, metric) for m, s in run.scores.items()}
    soft, title = rates.get("soft_prompt"), COLUMNS[metric].title
    if soft is None:
        return f'<td class="score {metric}" data-title="{title}"></td>'
    beside = {method_title(m, run.spec.shots): rates[m] for m in METHODS[:2] if m in rates}
    words = esc(", ".join(f"{name} {percent(rate.rate)}" for name, rate in beside.items()))
    small = f'<span class="unseen">, {words}</span>'
    if metric == "exact_match":
        small = "".join(f"<small>{esc(name.lower())} {percent(rate.rate)}</small>" for name, rate in beside.items())
        small = f'<span class="beside">{small}</span>'
    marks = "".join(
        f'<i class="{colour(m)}" style="left:{rates[m].rate * 100:.0f}%"></i>' for m in METHODS if m in rates
    )
    return (
        f'<td class="score {metric}" data-title="{title}"><span><b>{percent(soft.rate)}</b>'
        f'<span class="marks-line" aria-hidden="true" title="{words}">{marks}</span></span>{small}</td>'
    )


def sparkline(run: Listed) -> str:
    """Exact match from probe to probe on a scale from 0 to 1; the loss on its own scale where there are no probes."""
    values, what = (run.probes, "Exact match") if len(run.probes) > 1 else (run.losses, "Loss")
    if len(values) < 2:
        return ""
    ends = [percent(v) if what == "Exact match" else f"{v:.2g}" for v in (values[0], values[-1])]
    low, high = (0.0, 1.0) if what == "Exact match" else (min(values), max(values))
    span, inner = high - low or 1.0, HEIGHT - 6
    points = [
        (3 + (WIDTH - 6) * i / (len(values) - 1), 3 + inner * (1 - (v - low) / span)) for i, v in enumerate(values)
    ]
    path = " ".join(f"{x:.0f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    kind = "exact" if what == "Exact match" else "loss"
    return (
        f'<svg class="spark {kind}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{what} by step, from {ends[0]} to {ends[1]}"><polyline points="{path}"/>'
        f'<circle cx="{x:.0f}" cy="{y:.1f}" r="2.5"/></svg>{"<small>loss</small>" if kind == "loss" else ""}'
    )


def _actions(run: Listed, asked: bool, may_change: bool) -> str:
    name = esc(run.id)

    def button(event: str, what: str, words: str, key: str) -> str:
        data = f'data-{event}="{what}" data-run="{name}" data-key="{key}-{name}"'
        return f'<button type="button" {data}>{words}</button>'

    if asked and may_change:
        # Cancel stands where Delete was: a double click, or Enter held down, deletes nothing.
        return (
            '<span class="sure" role="group" aria-label="Really delete this run?">'
            f'{button("alter", "delete", "Really delete?", "really")}{button("ask", "keep", "Cancel", "delete")}</span>'
        )
    parts = []
    if may_change and run.status in BUTTONS["resume"]:
        parts.append(button("alter", "resume", "Resume", "resume"))
    if run.status == "finished" and not run.problem:
        parts.append(f'<a href="/export/{name}.zip" download data-key="zip-{name}">ZIP</a>')
        parts.append(f'<a href="/report/{name}.html" download data-key="report-{name}">Report</a>')
    if may_change:
        parts.append(button("ask", "doubt", "Delete", "delete"))
    return "".join(parts)


def comparable(runs: Sequence[Listed]) -> str:
    """Why these runs cannot be compared, in a sentence; empty if they can be."""
    benchmarks = sorted({benchmark_title(run.spec.benchmark) for run in runs})
    if len({run.spec.benchmark for run in runs}) > 1:
        names = " and ".join(benchmarks) if len(benchmarks) < 3 else "these benchmarks"
        return f"Runs of {names} have no items in common: choose runs of one benchmark."
    waiting: list[Status] = [run.status for run in runs if run.status != "finished" or run.problem]
    if waiting:
        which = "One of them is" if len(waiting) == 1 else f"{len(waiting)} of them are"
        return f"{which} not finished or cannot be read: only finished runs can be compared."
    return f"Choose another run of {benchmarks[0]} to compare it with." if len(runs) < 2 else ""


def choice(runs: Sequence[Listed], chosen: Sequence[str]) -> str:
    """The line about the chosen runs, with the link that compares them."""
    known: Mapping[str, Listed] = {run.id: run for run in runs}
    picked = [known[name] for name in chosen if name in known]
    if not picked:
        return ""
    problem, ids = comparable(picked), ",".join(run.id for run in picked)
    link = f'<a href="?compare={esc(ids)}" data-compare="{esc(ids)}" data-key="compare">Compare</a>'
    if problem:
        link = '<a role="link" aria-disabled="true">Compare</a>'
    return (
        f"<b>{count(len(picked), 'run')} chosen</b>{link}"
        f'<button type="button" class="quiet" data-clear data-key="clear">Clear</button><span>{esc(problem)}</span>'
    )
