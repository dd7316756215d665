"""The tab Rankings: do the scores of base models order them as their post-trained twins are ordered?

It is drawn when it is opened and when something in it is chosen. All pages share one reading of the run folders.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import gradio as gr

from spt.rank_choice import Chosen, Found, Metric, choose
from spt.rank_curves import Course, courses
from spt.rank_pairs import default_file
from spt.rank_sources import Reader
from spt.ranking import OVERALL, Against, Ranked, Rankings, rank
from spt.spec import UserError
from spt.store import Store
from spt.ui import rank_charts, rank_html
from spt.ui.layout import CHART, CHART_JS
from spt.ui.page import LIGHT
from spt.ui.text import esc

FRESH = 2.0  # seconds for which a look at the folders is good
MOST_CURVES = 500  # runs whose course is read; reading a course takes longer than reading a result
SCORES: list[tuple[str, Metric]] = [
    ("Exact match", "exact_match"), ("Knowledge", "knowledge"), ("Format following", "format"),
]  # fmt: skip
REFERENCES: list[tuple[str, Against]] = [
    ("Zero-shot", "zero_shot"), ("Few-shot", "few_shot"), ("Soft prompt", "soft_prompt"), ("The same method", "same"),
]  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What a page shows."""

    rankings: Rankings
    courses: dict[bool, Course]

    def ranked(self, benchmark: str) -> Ranked | None:
        """The benchmark that was chosen, where it is still there; else all of them, or the only one."""
        every = [*([self.rankings.overall] if self.rankings.overall else []), *self.rankings.benchmarks]
        return next((ranked for ranked in every if ranked.benchmark == benchmark), every[0] if every else None)


class Board:
    """Reads and ranks for all open pages together, and again only when a result or the pairs have changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._reader = Reader()
        self._read = float("-inf")
        self._state: tuple[Found, float] = (Found(), 0.0)
        self._chosen: dict[Metric, Chosen] = {}
        self._seen: dict[tuple[Metric, Against], Seen] = {}

    def look(self, score: Metric, against: Against) -> Seen:
        """The rankings as they are now. Raises UserError for a file of pairs that is none."""
        with self._lock:
            if time.monotonic() - self._read > FRESH:
                file = default_file()
                state = (self._reader.read(), file.stat().st_mtime if file.is_file() else 0.0)
                if state != self._state:
                    self._state, self._chosen, self._seen = state, {}, {}
                self._read = time.monotonic()
            if (score, against) not in self._seen:
                self._seen[score, against] = self._rank(score, against)
            return self._seen[score, against]

    def _rank(self, score: Metric, against: Against) -> Seen:
        if score not in self._chosen:
            self._chosen[score] = choose(self._state[0], self._reader.outcomes, score)
        chosen = self._chosen[score]
        rankings = rank(chosen.scores, chosen.twins, against, score, chosen.notes)
        newest = sorted(chosen.runs, key=lambda entry: entry.changed)[-MOST_CURVES:]
        return Seen(rankings, courses((entry, self._reader.probes(entry)) for entry in newest))


def render(board: Board, score: Metric, against: Against, benchmark: str) -> dict[str, dict[str, Any]]:
    """Properties of the parts that are shown; the others are hidden."""
    try:
        seen = board.look(score, against)
    except UserError as error:
        return {"head": {"value": f'<p class="headline failed" role="alert">{esc(str(error))}</p>'}}
    rankings, ranked = seen.rankings, seen.ranked(benchmark)
    parts: dict[str, dict[str, Any]] = {"head": {"value": rank_html.headline(rankings, ranked)}}
    if needed := rank_html.needed(rankings):
        parts["needed"] = {"value": needed}
    if ranked is not None:
        choices = [(rank_html.title(each.benchmark), each.benchmark) for each in rankings.benchmarks]
        if rankings.overall is not None:
            choices.insert(0, (rank_html.title(OVERALL), OVERALL))
        parts |= {
            "choose": {},
            "benchmark": {"choices": choices, "value": ranked.benchmark, "visible": len(choices) > 1},
            "orders": {"value": rank_html.orders(rankings, ranked)},
            "numbers": {"value": rank_html.numbers(ranked)},
            "scatter-card": {},
            "scatter": {"value": rank_charts.scatter(ranked, against)},
            "pictures": {},
            "distance": {"value": rank_charts.by_method(rankings.averages, rankings.benchmarks, "distance")},
            "nearer": {"value": f'<p class="note">{esc(rank_html.nearer(rankings))}</p>'},
            "gap": {"value": rank_charts.by_method(rankings.averages, rankings.benchmarks, "gap")},
        }
        parts["gap-card"] = {"visible": any(average.gap is not None for average in rankings.averages)}
        if seen.courses:
            parts |= {
                "curves-card": {},
                "curves-head": {"value": rank_html.curves_head(seen.courses)},
                "curves": {"value": rank_charts.curves(seen.courses)},
            }
    if ranked is not None or rankings.notes:
        parts["notes"] = {"value": rank_html.notes(rankings)}
    return parts


def build(blocks: gr.Blocks, store: Store, tab: gr.Tab) -> None:
    """Inside `tab`: its parts, and what fills them."""
    board = Board(store)
    with gr.Column(elem_id="rankings"):
        parts = _parts()

    def show(score: Metric, against: Against, benchmark: str) -> list[Any]:
        wanted = render(board, score, against, benchmark or OVERALL)
        return [
            gr.update(**{"visible": True, **wanted[name]}) if name in wanted else gr.update(visible=False)
            for name in shown
        ]

    def at_once(score: Metric, against: Against, benchmark: str, request: gr.Request) -> list[Any]:
        if request.query_params.get("tab") != "rankings":  # drawn when it is opened
            return [gr.skip() for _ in shown]
        return show(score, against, benchmark)

    shown = [name for name in parts if name not in ("score", "against")]
    inputs, outputs = [parts[n] for n in ("score", "against", "benchmark")], [parts[name] for name in shown]
    tab.select(show, inputs, outputs, **LIGHT)
    blocks.load(at_once, inputs, outputs, **LIGHT)
    for name in ("score", "against", "benchmark"):
        parts[name].input(show, inputs, outputs, **LIGHT)


def _parts() -> dict[str, Any]:
    parts: dict[str, Any] = {"head": gr.HTML()}
    parts["needed"] = gr.HTML(visible=False, js_on_load="window.spt.copy(element)")
    with gr.Row(visible=False, elem_id="rank-choose") as parts["choose"]:
        parts["benchmark"] = gr.Dropdown([], label="Benchmark", interactive=True, elem_id="rank-benchmark")
        parts["score"] = gr.Dropdown(SCORES, value="exact_match", label="Score", interactive=True, elem_id="rank-score")
        parts["against"] = gr.Dropdown(
            REFERENCES, value="zero_shot", label="Post-trained models’ score", interactive=True, elem_id="rank-against"
        )
    parts["orders"] = gr.HTML(visible=False)
    parts["numbers"] = gr.HTML(visible=False)
    with gr.Column(visible=False, elem_classes="card") as parts["scatter-card"]:
        gr.HTML(
            '<h3>Base against post-trained</h3><p class="note">A mark is a pair of models. On the dotted line both '
            "score the same; a method that foretells puts the marks on a rising line.</p>"
        )
        parts["scatter"] = _chart("rank-scatter")
    with gr.Row(visible=False, elem_id="rank-pictures") as parts["pictures"]:
        with gr.Column(elem_classes="card"):
            gr.HTML(
                '<h3>Swap distance by method</h3><p class="note">Mean of the benchmarks with its 95 % interval; '
                "faint: each benchmark. Left is nearer.</p>"
            )
            parts["distance"] = _chart("rank-distance")
            parts["nearer"] = gr.HTML()
        with gr.Column(elem_classes="card") as parts["gap-card"]:
            gr.HTML(
                '<h3>Score gap by method</h3><p class="note">Post-trained minus base, both with the same method. What '
                "form alone opened, a method that teaches the form closes.</p>"
            )
            parts["gap"] = _chart("rank-gap")
    with gr.Column(visible=False, elem_classes="card") as parts["curves-card"]:
        parts["curves-head"] = gr.HTML()
        parts["curves"] = _chart("rank-curves")
    parts["notes"] = gr.HTML(visible=False)
    return parts


def _chart(name: str) -> Any:
    return gr.HTML({}, html_template=CHART, js_on_load=CHART_JS, elem_id=name)
