"""The tab of all runs: search, sort, open, choose to compare, resume, export, delete."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gradio as gr

from spt import queue
from spt.spec import UserError
from spt.store import Store
from spt.ui import access, runs_table
from spt.ui.listed import Lister
from spt.ui.page import LIGHT
from spt.ui.runs_table import COLUMNS, MORE, View

LOADED_JS = (
    "window.spt.links(element, trigger); window.spt.runs(element, props, watch, trigger) "
    "/* 'pick' 'ask' 'alter' 'compare' */"
)


class RunsTab:
    """What the table's buttons do, and what it shows afterwards."""

    def __init__(self, store: Store, lister: Lister) -> None:
        self.store = store
        self.lister = lister

    def may_change(self, request: gr.Request | None, run: str) -> bool:
        """Whether this visitor may resume or delete a run."""
        visitor = access.visitor(request)
        if visitor.operator or visitor.read_only:  # no folder is read, where there are hundreds
            return not visitor.read_only
        try:
            return visitor.may_change(self.store.get(run))
        except UserError:
            return False

    def render(self, view: View, request: gr.Request | None) -> Any:
        """The message for `runs.js`; nothing where the page has it all."""
        news = runs_table.message(self.lister.now(), view, lambda run: self.may_change(request, run))
        state = {name: value for name, value in news.items() if name != "rows"}
        if not news["rows"] and state == view.state:
            return gr.skip()
        view.state = state
        return gr.update(value={"time": time.time(), **news})  # `time`: one message can overtake another

    def act(self, view: View, what: str, run: str, runs: Sequence[str], request: gr.Request | None) -> None:
        """What a button asks for. Raises UserError where it is not possible."""
        if what != "look":
            view.asked = run if what == "doubt" else ""
        match what:
            case "all":  # by a page that has no row yet
                view.sent, view.state = {}, {}
            case "sort" if run in COLUMNS:
                view.sort(run)
            case "more":
                view.most += MORE
            case "choose":
                view.chosen = tuple(map(str, runs))
            case "resume":
                queue.submit(access.check(request, self.store.get(run)))
                self.lister.expire()
            case "delete":
                access.check(request, self.store.get(run)).delete()
                self.lister.expire()


def build(store: Store, lister: Lister) -> tuple[Any, Any]:
    """Inside the current tab. Returns the table, whose `pick` opens a run, and the event that changes one."""
    tab = RunsTab(store, lister)
    view = gr.State(View())
    with gr.Column(elem_id="runs-tab"):
        search = gr.Textbox(
            label="Search runs", placeholder="Model, benchmark, status, id", elem_id="search-runs"
        )
        table: Any = gr.HTML({}, html_template=runs_table.shell(), js_on_load=LOADED_JS, elem_id="all-runs")

    def ask(view: View, event: gr.EventData, request: gr.Request) -> Any:
        try:
            tab.act(view, str(event.what), str(getattr(event, "run", "")), getattr(event, "runs", []), request)
        except UserError as error:
            gr.Warning(str(error))
        return tab.render(view, request)

    def searched(view: View, query: str, request: gr.Request) -> Any:
        view.query, view.most = query, MORE
        return tab.render(view, request)

    table.ask(ask, [view], table, **LIGHT)
    search.change(searched, [view, search], table, **LIGHT)
    return table, table.alter(ask, [view], table, **LIGHT)
