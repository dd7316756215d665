"""The tour for a stand: finished runs one after the other, large, until a visitor touches the page.

The browser asks for one run at a time and plays it by itself (`assets/kiosk.js`): a frame costs the server nothing.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from spt.spec import UserError
from spt.ui import charts, live, rates, watch
from spt.ui.follow import Follower, Shown
from spt.ui.scores import headline
from spt.ui.text import benchmark_title, esc
from spt.view import count, probed_levels

MOST = 12  # runs in the loop, the last ones made
TEXT = 280  # characters of an answer: it is read while it changes, from some metres away


def build(follower: Follower) -> Any:
    """The tour's layer over the page. It stays empty, and asks for nothing, where no tour was asked for."""

    def following(before: str) -> dict[str, Any]:
        return scene(follower, str(before))

    return gr.HTML(
        html_template='<div class="kiosk" hidden></div>',
        js_on_load="window.spt.kiosk(element, server, trigger) /* 'pick' */",
        server_functions=[following],
        elem_id="kiosk",
    )


def scene(follower: Follower, before: str = "") -> dict[str, Any]:
    """What the browser needs to play the finished run that comes after `before`; without any, the idea of spt."""
    runs = [run.id for run in follower.list.now().runs if run.status == "finished" and not run.problem][:MOST]
    start = runs.index(before) + 1 if before in runs else 0
    for run in [*runs[start:], *runs[:start]]:
        try:
            return _played(follower.get(run))
        except UserError:  # deleted a moment ago, or damaged: the next one
            continue
    return {"html": live.welcome_html()}


def _played(shown: Shown) -> dict[str, Any]:
    view, spec = shown.view, shown.folder.spec
    probes, probed = list(view.probes.values()), view.data.probed if view.data else ()
    closed = bool(view.data and view.data.closed)
    title = f"{benchmark_title(spec.benchmark)} · {live.model_title(spec.model)}"
    played: dict[str, Any] = {
        "run": shown.folder.id,
        "html": f'<p class="kicker">{esc(title)}</p><h1>{esc(headline(view.scores) or title)}</h1>',
        "scores": rates.table(view.scores, spec),
        "of": spec.steps,
    }
    if probes and probed:
        questions = {question.id: question for question in probed}
        chosen = questions[watch.telling(probes, probed, 1)[0]]
        levels = probed_levels(shown.predictions, view.data)
        played |= {
            "figure": charts.probe_figure(shown.folder.id, probes, levels, spec.steps, spec.shots, closed),
            "legend": live.keys_html(spec),
            "note": f"on {count(len(probed), 'test item')}",
            "answer": watch.playback(shown.folder.id, [chosen], probes, spec.steps, TEXT),
        }
    return played
