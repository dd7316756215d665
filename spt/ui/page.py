"""What the page shows for a run: the properties of every part, and which of them an open page does not have yet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import gradio as gr

from spt.spec import UserError
from spt.store import Status, Store
from spt.ui import answers, charts, findings, judging, live, pictures, rates, scores, watch
from spt.ui.access import OPERATOR, READ_ONLY, Visitor
from spt.ui.answers import Choice
from spt.ui.follow import Follower, Shown
from spt.view import probed_levels

# Which buttons a run has, by its status.
BUTTONS: dict[str, tuple[Status, ...]] = {
    "stop": ("queued", "running"),
    "resume": ("stopped", "interrupted", "failed"),  # a new one has Start
    "again": ("finished",),
}

# Light events: they wait for nobody, show no spinner, and a newer one replaces an older that has not run yet.
LIGHT: dict[str, Any] = {
    "show_progress": "hidden",
    "concurrency_limit": None,
    "trigger_mode": "always_last",
    "api_visibility": "private",
}
# What changes a run: not shown to a visitor who may not.
CHANGES = (*BUTTONS, "judge", "judge-model", "judge-url", "judge-start")

# Seconds between two looks at a run; longer where it only goes on if somebody resumes it, maybe from another page.
LIVE_POLL, IDLE_POLL = 1.0, 5.0

NOT_YOURS = '<p class="note">Who started this run, or the operator of this page, can resume it.</p>'

START: dict[Status, str] = {
    "new": "Start",
    "queued": "Show this run",
    "running": "Show this run",
    "stopped": "Resume",
    "interrupted": "Resume",
    "failed": "Try again",
    "finished": "Show the result",
}


@dataclass
class Session:
    """What one open page looks at, and what it has been sent."""

    run: str = ""
    form: str = ""  # the run that the form's settings would start
    need: str = ""  # key of the memory estimate that the form shows
    questions: list[str] | None = None  # watched from step to step; None = the most telling ones
    choice: Choice = field(default_factory=Choice)  # of the answers side by side
    controls: bool = False  # the controls' answers beside the others
    preview: bool = False  # the preview is open
    seen: str = ""  # the last run that was there
    sent: dict[str, Any] = field(default_factory=dict)
    visitor: Visitor = OPERATOR  # whose request was the last; handlers ask `access`, this is for what is shown

    def open(self, run: str) -> None:
        """Look at a run, from its top."""
        if run != self.run:
            self.run, self.questions, self.choice = run, None, Choice()
            self.sent.pop("search", None)


def standing(visitor: Visitor) -> str:
    """A line for visitors who may do more or less than others; empty for one person at their own machine."""
    words = READ_ONLY if visitor.read_only else "You are the operator here and may change every run."
    return f'<p class="note" role="note">{words}</p>' if visitor.read_only or visitor.by_token else ""


class Page:
    """Components by name, the values they should have, and the difference to what was sent."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.follower = Follower(store)
        self.parts: dict[str, Any] = {}  # Gradio adds the methods of a component at run time
        self.openers: list[Any] = []  # components whose `pick` opens a run
        self.altered: list[Any] = []  # events that may have changed or deleted the run that is shown

    def outputs(self) -> list[Any]:
        return list(self.parts.values())

    def render(self, session: Session) -> list[Any]:
        """Updates of all parts, in the order of `outputs`; parts that would not change are skipped."""
        wanted = self.wanted(session)
        updates = []
        for name in self.parts:
            new = wanted.get(name, {"visible": False})
            if name != "timer":
                new = {"visible": True, **new}
            if session.sent.get(name) == new:
                updates.append(gr.skip())
            else:
                session.sent[name] = new
                updates.append(gr.update(**new))
        return updates

    def wanted(self, session: Session) -> dict[str, dict[str, Any]]:
        """Properties of every part that is shown; a part that is not named is hidden."""
        shown, problem = None, ""
        try:
            shown = self.follower.get(session.run) if session.run else None
            session.seen = session.run
        except UserError as error:
            gone = session.seen == session.run and not (self.store.root / session.run).exists()
            problem = f"There is no run {session.run!r} any more: it was deleted." if gone else str(error)
        # After the run itself, so that the list knows what the run has just been seen to do.
        runs: dict[str, dict[str, Any]] = {
            "runs": {"value": live.runs_html(self.follower.list.now().runs, session.run)},
            "start": {"value": self._start(session)},
        }
        if words := standing(session.visitor):
            runs["standing"] = {"value": words}
        if shown is None:
            html = live.broken_html(problem) if problem else live.welcome_html(session.visitor.read_only)
            return runs | {"run": {"value": html}, "timer": {"active": False}}
        return runs | self._of_run(session, shown)

    def status(self, run: str) -> Status:
        """How a run stands; `new` if it never was."""
        try:
            return self.store.get(run).status()
        except UserError:
            return "new"

    def _start(self, session: Session) -> str:
        """What Start does with the run that the form would start."""
        try:
            folder = self.store.get(session.form)
        except UserError:  # it never was
            return START["new"]
        status = folder.status()
        if status in BUTTONS["resume"] and not session.visitor.may_change(folder):
            return START["running"]
        return START[status]

    def _of_run(self, session: Session, shown: Shown) -> dict[str, dict[str, Any]]:
        view, status, spec = shown.view, shown.status, shown.folder.spec
        losses, probes = list(view.losses.values()), list(view.probes.values())
        lively = status in live.LIVE or shown.pending
        parts: dict[str, dict[str, Any]] = {
            "run": {"value": live.run_html(session.run, status, view, shown.position)},
            "timer": {
                "active": status != "finished" or shown.pending, "value": LIVE_POLL if lively else IDLE_POLL
            },
            "body": {},
        }  # fmt: skip
        parts |= self._buttons(shown)
        judge = view.result.judge if view.result else None
        parts["scores"] = {"value": rates.table(view.scores, spec, judge), "visible": bool(view.scores)}
        if shown.analysis is not None and shown.analysis.findings:
            parts["findings"] = {"value": findings.card(shown.analysis, spec.shots)}
        parts["facts"] = {"value": scores.facts(spec, view.model, view.result)}
        if status == "finished":
            parts["exports"] = {"value": scores.exports(session.run)}
        closed = shown.analysis.closed if shown.analysis else bool(view.data and view.data.closed)
        if cells := shown.cells:
            parts["cells"] = {"value": pictures.squares(cells, closed, spec.shots)}
        if letters := pictures.letters(shown.letters, spec.shots):
            parts["letters"] = {"value": letters}
        if shown.analysis is not None and not closed and not shown.pending:
            parts |= {name: {} for name in ("judge", "judge-model", "judge-url", "judge-start")}
        if view.scores or losses or probes:
            parts["charts"] = {}
        parts["loss"] = {"value": charts.loss_figure(session.run, losses, spec.steps, closed)}
        if spec.probe_every:
            levels = probed_levels(shown.predictions, view.data)
            parts["probe-card"] = {}
            parts["legend"] = {"value": live.legend_html(spec, view.data)}
            figure = charts.probe_figure(session.run, probes, levels, spec.steps, spec.shots, closed)
            parts["probe"] = {"value": figure}
        if view.data and probes:
            followed = view.data.probed
            chosen = watch.telling(probes, followed) if session.questions is None else session.questions
            parts["watch"] = {}
            parts["questions"] = {"choices": watch.choices(followed), "value": chosen}
            asked = [question for name in chosen for question in followed if question.id == name]
            play = watch.live_playback if status in live.LIVE else watch.playback
            parts["playback"] = {"value": play(session.run, asked, probes, spec.steps)}
        if shown.items:
            parts |= self._compare(session, shown)
        if not session.visitor.may_change(shown.folder):
            parts = {name: part for name, part in parts.items() if name not in CHANGES}
            if status in BUTTONS["resume"] and not session.visitor.read_only:
                parts["notice"] = {"value": NOT_YOURS}
        return parts

    def _compare(self, session: Session, shown: Shown) -> dict[str, dict[str, Any]]:
        """The answers side by side, as the reader filters, searches and pages them."""
        controls = answers.controls(shown.items)
        found = answers.choose(shown.items, session.choice)
        session.choice = replace(session.choice, page=found.page)
        beside = controls if session.controls else []
        return {
            "compare": {},
            "filter": {"choices": answers.choices(shown.items, found), "value": session.choice.filter},
            "search": {"value": ""},  # sent when a run is opened; then the words are the reader's own
            "controls": {"visible": bool(controls), "value": session.controls},
            "answers": {"value": answers.side_by_side(found, session.choice, shown.folder.spec.shots, beside)},
            "pager": {"visible": found.pages > 1},
            "previous": {"interactive": found.page > 1},
            "next": {"interactive": found.page < found.pages},
            "where": {"value": f'<span class="where">{found.where}</span>'},
        }

    def _buttons(self, shown: Shown) -> dict[str, dict[str, Any]]:
        """The buttons that a run has now, and the line of what goes on with a finished one."""
        status = shown.status
        parts: dict[str, dict[str, Any]] = {name: {"visible": status in when} for name, when in BUTTONS.items()}
        stopping = status == "running" and shown.folder.stop_requested()
        parts["stop"] |= {"value": "Stopping …" if stopping else "Stop", "interactive": not stopping}
        if shown.pending:
            parts["again"] = {"visible": False}
            if shown.notice is None:  # it still waits
                parts["stop"] = {"visible": True, "value": "Cancel", "interactive": True}
        if notice := judging.notice_html(shown):
            parts["notice"] = {"value": notice}
        return parts
