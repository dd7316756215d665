"""The tab "Compare": two to six runs of one benchmark, and the four ways of a base and a post-trained model.

`?compare=ID1,ID2` opens it. What is compared is remembered by the session and by the address alone. A timer looks again
only while the tab is open and one of the runs is live.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import gradio as gr

from spt.compare import MOST, Mark, RunComparison, Side, compare_runs, find_pair
from spt.presets import model_title
from spt.spec import METHODS, UserError
from spt.ui import compare_chart, compare_items, compared
from spt.ui.compare_chart import Curve
from spt.ui.compare_items import FOUR, Choice
from spt.ui.form import problem_html
from spt.ui.layout import CHART, CHART_JS
from spt.ui.listed import Listed
from spt.ui.live import LIVE
from spt.ui.page import LIGHT, LIVE_POLL, Page
from spt.ui.runs_table import settings
from spt.ui.text import benchmark_title, method_title

KEPT = 8  # comparisons that stay in memory, of all pages together
SUGGESTED = 3
OPEN_JS = "window.spt.links(element, trigger) /* 'pick' 'compare' */"
HEAD_JS = "window.spt.compared(element, watch); window.spt.links(element, trigger) /* 'pick' */"
WAYS_JS = "window.spt.ways(element, watch, trigger) /* 'mark' 'clear' */"
UP_JS = "() => document.querySelector('#compare-items').scrollIntoView({behavior: 'smooth'})"


@dataclass
class Look:
    """What one open page compares, and what it has been sent."""

    runs: tuple[str, ...] = ()
    reference: str = ""
    base: str = ""  # empty = by name
    post: str = ""
    view: str = ""  # FOUR or a method; empty = the most telling one
    choice: Choice = field(default_factory=Choice)
    seen: set[str] = field(default_factory=set)  # runs that were there
    open: bool = False  # the tab is
    sent: dict[str, Any] = field(default_factory=dict)

    def compare(self, runs: Sequence[str]) -> None:
        """Look at other runs, from the top."""
        if tuple(runs) != self.runs:
            self.runs = tuple(runs)
            self.choice = Choice(search=self.choice.search)
            self.view = self.base = self.post = ""


class CompareTab:
    """The components of the tab and their handlers."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.made: OrderedDict[tuple[str, ...], tuple[list[Side], RunComparison]] = OrderedDict()
        self.look = gr.State(Look())
        self.parts: dict[str, Any] = {}
        with gr.Column(elem_id="compare-tab"):
            self._build()
        self.parts["timer"] = gr.Timer(LIVE_POLL, active=False)

    def _build(self) -> None:
        parts = self.parts
        parts["idea"] = gr.HTML(js_on_load=OPEN_JS, elem_id="compare-idea")
        with gr.Row(elem_id="compare-choose"):
            parts["pick"] = gr.Dropdown(
                [], label="Runs to compare", multiselect=True, max_choices=MOST, interactive=True,
                elem_id="compare-pick",
            )  # fmt: skip
            parts["reference"] = gr.Radio([], label="Reference", visible=False, interactive=True, elem_id="compare-ref")
        parts["problem"] = gr.HTML(visible=False)
        with gr.Column(visible=False, elem_id="compare-body") as parts["body"]:
            parts["head"] = gr.HTML(js_on_load=HEAD_JS)
            parts["rates"] = gr.HTML()
            with gr.Column(elem_classes="card", visible=False) as parts["curves"]:
                parts["key"] = gr.HTML()
                parts["chart"] = gr.HTML({}, html_template=CHART, js_on_load=CHART_JS, elem_id="compare-chart")
            with gr.Column(elem_classes="card", elem_id="four"):
                gr.HTML("<h3>Four ways to ask</h3>")
                with gr.Row(elem_id="four-pick"):
                    parts["base"] = gr.Dropdown([], label="Base model", interactive=True)
                    parts["post"] = gr.Dropdown([], label="Post-trained model", interactive=True)
                parts["ways"] = gr.HTML(js_on_load=WAYS_JS, elem_id="ways")
            gr.HTML('<div class="section"><h3>Question by question</h3></div>', elem_id="compare-items")
            with gr.Row(elem_id="compare-filters"):
                parts["view"] = gr.Radio([], label="Answers", show_label=False, container=False, interactive=True)
                parts["search"] = gr.Textbox(
                    label="Search questions and answers", placeholder="Search questions and answers", show_label=False,
                    container=False, interactive=True, elem_id="compare-search",
                )  # fmt: skip
                parts["filter"] = gr.Radio([], label="Show", show_label=False, container=False, interactive=True)
            parts["items"] = gr.HTML()
            with gr.Row(visible=False, elem_id="compare-pager") as parts["pager"]:
                parts["previous"] = gr.Button("← Previous")
                parts["where"] = gr.HTML()
                parts["next"] = gr.Button("Next →")

    # ---- wiring

    def wire(
        self, blocks: gr.Blocks, tab: gr.Tab, others: Sequence[gr.Tab], strip: gr.Tabs, links: Sequence[Any]
    ) -> None:
        """Connect everything. `links` are components whose `compare` asks for a comparison."""
        parts, outputs = self.parts, list(self.parts.values())

        def on(listener: Any, act: Callable[..., None], *inputs: Any, js: str | None = None) -> Any:
            def handler(look: Look, *values: Any) -> list[Any]:
                act(look, *values)
                return self.render(look)

            return listener(handler, [self.look, *inputs], outputs, js=js, **LIGHT)

        def load(look: Look, request: gr.Request) -> list[Any]:
            ids = str(request.query_params.get("compare", ""))
            if not ids:  # shown once the tab is opened
                return [gr.skip()] * len(outputs)
            look.sent.clear()
            look.compare([each.strip() for each in ids.split(",") if each.strip()][:20])
            return self.render(look)

        def asked(look: Look, event: gr.EventData) -> list[Any]:
            look.open = True
            look.compare(str(event.runs).split(",")[:20])
            return self.render(look)

        def marked(look: Look, event: gr.EventData) -> list[Any]:
            self.mark(look, int(event.column), str(event.mark))
            return self.render(look)

        def closed(look: Look) -> Any:
            look.open = False
            look.sent.pop("timer", None)
            return gr.update(active=False)

        blocks.load(load, self.look, outputs, **LIGHT)
        tab.select(self._opened, self.look, outputs, **LIGHT)
        for other in others:
            other.select(closed, self.look, parts["timer"], **LIGHT)
        for link in (*links, parts["idea"]):
            link.compare(asked, self.look, outputs, **LIGHT)
            link.compare(lambda: gr.Tabs(selected="compare"), None, strip, **LIGHT)
        parts["ways"].mark(marked, self.look, outputs, **LIGHT)
        on(parts["ways"].clear, lambda look: self._choose(look, marks=()))
        on(parts["timer"].tick, lambda look: None)
        on(parts["pick"].input, lambda look, runs: look.compare(runs or ()), parts["pick"])
        on(parts["reference"].input, lambda look, run: setattr(look, "reference", run), parts["reference"])
        on(parts["base"].input, lambda look, run: self.pair(look, base=run), parts["base"])
        on(parts["post"].input, lambda look, run: self.pair(look, post=run), parts["post"])
        on(parts["view"].input, self._view, parts["view"])
        on(parts["filter"].input, lambda look, name: self._choose(look, filter=name), parts["filter"])
        # `input` says nothing of words that come or go at once.
        on(parts["search"].change, lambda look, words: self._choose(look, search=words or ""), parts["search"])
        on(parts["previous"].click, lambda look: self._turn(look, -1)).then(None, js=UP_JS)
        on(parts["next"].click, lambda look: self._turn(look, 1)).then(None, js=UP_JS)

    def _opened(self, look: Look) -> list[Any]:
        """Everything anew: another tab may have changed the runs, and a page forgets what a closed tab was sent."""
        look.open = True
        look.sent.clear()
        self.page.follower.list.expire()
        return self.render(look)

    # ---- what the handlers do

    def _choose(self, look: Look, **what: Any) -> None:
        look.choice = replace(look.choice, **{"page": 1, **what})

    def _turn(self, look: Look, by: int) -> None:
        look.choice = replace(look.choice, page=look.choice.page + by)

    def _view(self, look: Look, view: str) -> None:
        look.view = view
        self._choose(look)

    def mark(self, look: Look, column: int, mark: str) -> None:
        """Press a count of the four ways: its questions alone; once more: no longer."""
        pressed = dict(look.choice.marks)
        wanted: Mark | None = next((each for each in get_args(Mark) if each == mark), None)
        if wanted is None or column not in range(4):
            return
        if pressed.get(column) == wanted:
            del pressed[column]
        else:
            pressed[column] = wanted
        look.view = FOUR
        self._choose(look, marks=tuple(sorted(pressed.items())))

    def pair(self, look: Look, base: str = "", post: str = "") -> None:
        """Say which run is which; one that is said to be both takes the other's place."""
        sides, _, _ = self._sides(look)
        pair = self._pair(look, sides)
        before = (pair[0].id, pair[1].id) if pair else (look.base, look.post)
        look.base, look.post = base or before[0], post or before[1]
        if look.base == look.post:
            look.base, look.post = before[::-1] if all(before) else (base, post)
        if len(sides) == 2 and not (look.base and look.post):  # then the other one is the other
            other = next(side.id for side in sides if side.id != (look.base or look.post))
            look.base, look.post = look.base or other, look.post or other
        self._choose(look, marks=())

    # ---- what is shown

    def render(self, look: Look) -> list[Any]:
        """Updates of all parts; those that would not change are skipped."""
        wanted = self.wanted(look)
        updates = []
        for name in self.parts:
            new = wanted.get(name, {"visible": False})
            if name != "timer":
                new = {"visible": True, **new}
            if look.sent.get(name) == new:
                updates.append(gr.skip())
            else:
                look.sent[name] = new
                updates.append(gr.update(**new))
        return updates

    def wanted(self, look: Look) -> dict[str, dict[str, Any]]:
        """Properties of every part that is shown; a part that is not named is hidden."""
        sides, curves, problems = self._sides(look)
        parts: dict[str, dict[str, Any]] = {"timer": {"active": False}}
        found = None
        try:
            if len(sides) > 1:
                found = self._compare(look, sides)
        except UserError as error:
            problems.append(str(error))
        if problems:
            parts["problem"] = {"value": "".join(map(problem_html, problems))}
        runs = self.page.follower.list.now().runs
        parts["pick"] = {"choices": _choices(runs, look.runs), "value": list(look.runs)}
        if not look.runs:
            finished = [run for run in runs if run.status == "finished" and not run.problem]
            parts["idea"] = {"value": compared.idea(finished, suggestions(finished))}
        elif len(sides) == 1 and not problems:
            parts["idea"] = {"value": compared.one_more(sides[0])}
        live = look.open and any(side.status in LIVE for side in sides)
        parts["timer"] = {"active": live, "value": LIVE_POLL}
        return parts if found is None else parts | self._body(look, sides, curves, found)

    def _body(
        self, look: Look, sides: Sequence[Side], curves: Sequence[Curve], found: RunComparison
    ) -> dict[str, dict[str, Any]]:
        named = [(f"{line.letter} · {line.label}", line.run) for line in found.runs]
        parts: dict[str, dict[str, Any]] = {
            "body": {},
            "head": {"value": compared.head(found)},
            "rates": {"value": compared.rates(found)},
            "reference": {"choices": [(line.letter, line.run) for line in found.runs], "value": found.reference},
            "search": {},  # its words are the reader's: a value sent back would overtake the typing
        }
        labels = [line.label for line in found.runs]
        drawn = [
            replace(curve, letter=line.letter, label=line.label)
            for curve, line in zip(curves, found.runs, strict=True)
        ]
        if (figure := compare_chart.figure(",".join(look.runs), drawn)) is not None:
            parts |= {"curves": {}, "key": {"value": compared.curves(found)}, "chart": {"value": figure}}
        pair = self._pair(look, sides)
        base, post = (pair[0].id, pair[1].id) if pair else (look.base, look.post)
        parts |= {"base": {"choices": named, "value": base or None}, "post": {"choices": named, "value": post or None}}
        view = look.view if look.view in METHODS or pair else ""
        view = view or (FOUR if pair else next(m for m in ("soft_prompt", *METHODS) if m in found.methods))
        four = view == FOUR
        if pair is None:
            note = "By their names none of these is the base model of another: choose which is which."
            parts["ways"] = {"value": f'<p class="note">{note}</p>'}
        else:
            parts["ways"] = {"value": compared.ways(*pair, dict(look.choice.marks))}
        columns = compare_items.by_way(*pair) if pair and four else compare_items.by_method(sides, labels, view)
        items = compare_items.choose(compare_items.join(columns), look.choice, four)
        look.choice = replace(look.choice, page=items.page)
        views = [("Four ways", FOUR)] if pair else []
        views += [(method_title(method), method) for method in ("soft_prompt", "zero_shot", "few_shot")]
        parts["view"] = {"choices": views, "value": view}
        if not four:
            parts["filter"] = {"choices": compare_items.choices(items, look.choice.filter), "value": look.choice.filter}
        parts["items"] = {"value": compare_items.html(items, columns, look.choice, four)}
        return parts | {
            "pager": {"visible": items.pages > 1},
            "previous": {"interactive": items.page > 1},
            "next": {"interactive": items.page < items.pages},
            "where": {"value": f'<span class="where">{items.where}</span>'},
        }

    def _sides(self, look: Look) -> tuple[list[Side], list[Curve], list[str]]:
        """The runs as they are now, and a sentence for each that cannot be compared."""
        sides, curves, problems = [], [], []
        for i, run in enumerate(look.runs):
            if run in look.runs[:i]:
                problems.append(f"Run {run!r} is there twice: it is compared once.")
                continue
            try:
                shown = self.page.follower.get(run)
            except UserError as error:
                gone = run in look.seen and not (self.page.store.root / run).exists()
                problems.append(f"Run {run!r} is not there any more: it was deleted." if gone else str(error))
                continue
            look.seen.add(run)
            rows = {method: shown.predictions.get(method, ()) for method in METHODS}
            sides.append(Side(run, shown.folder.spec, shown.status, rows))
            view = shown.view
            losses, probes = list(view.losses.values()), list(view.probes.values())
            curves.append(Curve("A", "", shown.folder.spec.steps, losses, probes))
        return sides, curves, problems

    def _compare(self, look: Look, sides: list[Side]) -> RunComparison:
        """The comparison, made once for the same answers: pages are turned without testing anew."""
        key = (look.reference, *(f"{side.id} {side.status}" for side in sides))
        known = self.made.get(key)
        if known is not None and all(_same(a, b) for a, b in zip(known[0], sides, strict=True)):
            sides[:] = known[0]  # with what they have worked out
            return known[1]
        found = compare_runs(sides, look.reference)
        self.made[key] = (list(sides), found)
        while len(self.made) > KEPT:
            self.made.popitem(last=False)
        return found

    def _pair(self, look: Look, sides: Sequence[Side]) -> tuple[Side, Side] | None:
        """Base and post-trained: as the reader said, else by name."""
        by_id = {side.id: side for side in sides}
        if look.base in by_id and look.post in by_id and look.base != look.post:
            return by_id[look.base], by_id[look.post]
        return None if look.base or look.post else find_pair(sides)


def _same(a: Side, b: Side) -> bool:
    """Whether two sides have the very same answers."""
    return all(a.rows[method] is b.rows[method] for method in METHODS)


def _choices(runs: Sequence[Listed], chosen: Sequence[str]) -> list[tuple[str, str]]:
    """Runs for the dropdown: those that are chosen, and finished or running ones of their benchmark."""
    first = next((run.spec.benchmark for run in runs if run.id in chosen), None)
    found = [
        (_name(run), run.id)
        for run in runs
        if run.id in chosen
        or (run.status in ("finished", "running") and not run.problem and first in (None, run.spec.benchmark))
    ]
    known = {run for _, run in found}
    return found + [(run[:80], run) for run in dict.fromkeys(chosen) if run not in known]


def _name(run: Listed) -> str:
    words = [benchmark_title(run.spec.benchmark), model_title(run.spec.model), *settings(run.spec)]
    return " · ".join([*words, run.id[-6:]])


def suggestions(runs: Sequence[Listed]) -> list[list[Listed]]:
    """Two runs of each of some benchmarks: a base model and its post-trained one, or the two last."""
    found: list[list[Listed]] = []
    for benchmark in dict.fromkeys(run.spec.benchmark for run in runs):
        same = [run for run in runs if run.spec.benchmark == benchmark]
        pair = find_pair([Side(run.id, run.spec, run.status, {}) for run in same])
        ids = [side.id for side in pair] if pair else [run.id for run in same[:2]]
        if len(ids) == 2:
            found.append([next(run for run in same if run.id == name) for name in ids])
    return found[:SUGGESTED]
