"""The wiring of the page: which event changes what. All state is the run folder and, a session, what it looks at.

Every handler changes the `Session`, or asks the queue for something, and renders: `Page.render` sends only what the
browser does not have yet. A timer does the same once a second while the run is live, and seldom while it waits to be
resumed. Closing the page ends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from spt import queue
from spt.presets import accept_terms
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from spt.ui import access, form, judging, live, needs, playground, preview, rankings_tab, runs_tab, tabs, tour, uploads
from spt.ui.answers import Choice
from spt.ui.blocks import LightBlocks
from spt.ui.compare_tab import CompareTab
from spt.ui.layout import run_column
from spt.ui.page import LIGHT, LIVE_POLL, Page, Session

# The run in the address bar goes along with every event: after a restart of the server the session is new, and the page
# that is still open says what it was looking at.
ADDRESS_JS = "(session, address, ...rest) => [session, new URL(location).searchParams.get('run') || '', ...rest]"
SURE_JS = (
    "(session, address, sure) => [session, new URL(location).searchParams.get('run') || '', "
    "confirm('Forget this result and make the run anew?')]"
)
# Up to the run after Start, unless the form has something to say.
TOP_JS = "() => { if (!document.querySelector('.problem')) window.scrollTo({top: 0, behavior: 'smooth'}) }"
PREVIEW_JS = "() => document.querySelector('#preview')?.scrollIntoView({behavior: 'smooth', block: 'nearest'})"
SCROLL_JS = "() => document.querySelector('#compare').scrollIntoView({behavior: 'smooth'})"

SHOWN = ("finished", "queued", "running")  # of a run that Start only shows: nothing of it is checked anew


def build(store: Store, rules: access.Rules = access.Rules()) -> gr.Blocks:  # noqa: B008 (frozen)
    """The page over the run folders of a store."""
    page, local = Page(store), rules.local
    with LightBlocks(title="spt", analytics_enabled=False, fill_width=True) as blocks:
        session = gr.State(Session())
        address = gr.Textbox(visible=False)
        gr.HTML(live.header_html(), js_on_load="window.spt.theme(element)")
        with gr.Tabs(elem_id="tabs") as strip:
            with gr.Tab("Run", id="run") as run_tab, gr.Row(elem_id="frame"):
                with gr.Column(elem_id="side"):
                    page.parts["standing"] = gr.HTML(visible=False, elem_id="standing")
                    with gr.Column(visible=not rules.read_only, elem_id="form"):
                        fields = form.build("window.spt.copy(element)", needs.CLICK_JS, local)
                    page.parts["runs"] = gr.HTML(js_on_load="window.spt.links(element, trigger) /* 'pick' 'tab' */")
                with gr.Column(elem_id="main"):
                    with gr.Column(visible=False, elem_id="preview") as shown:
                        rows = gr.HTML()
                        close = gr.Button("Close", elem_id="close-preview")
                    run_column(page.parts, local)
            with gr.Tab("Runs", id="runs") as all_runs:
                table, altered = runs_tab.build(store, page.follower.list)
            with gr.Tab("Compare", id="compare") as compare_tab:
                compare = CompareTab(page)
            with gr.Tab("Rankings", id="rankings") as rankings:
                rankings_tab.build(blocks, store, rankings)
            with gr.Tab("Playground", id="play", visible=not rules.read_only) as play_tab:
                play = playground.Playground(page)
        gr.HTML(live.footer_html())
        page.parts["timer"] = gr.Timer(LIVE_POLL, active=False)
        page.openers = [page.parts["runs"], table, compare.parts["head"], tour.build(page.follower)]
        page.altered = [altered]
        given = _wire(blocks, page, session, address, fields, local)
        by_name = {"run": run_tab, "runs": all_runs, "compare": compare_tab, "rankings": rankings}
        if not rules.read_only:  # where nobody would answer
            by_name["play"] = play_tab
            play.wire(blocks, play_tab)
        tabs.wire(blocks, strip, by_name, page.openers)
        others = [tab for tab in by_name.values() if tab is not compare_tab]
        compare.wire(blocks, compare_tab, others, strip, [table])
        page.parts["runs"].tab(lambda: gr.Tabs(selected="runs"), None, strip, **LIGHT)
        _wire_preview(session, fields, given, shown, rows, close, local)
        page.parts["runs"].pick(_shut, [session], shown, **LIGHT)
    return blocks


def _wire(
    blocks: gr.Blocks, page: Page, session: gr.State, address: gr.Textbox, fields: form.Form, local: bool
) -> Any:
    """Everything but the preview. Returns the event of a file that was uploaded and chosen in the form."""
    store, parts = page.store, page.parts
    state = [fields.terms_text, fields.terms, fields.problem, fields.command]
    parts["start"] = fields.start
    outputs = page.outputs()

    def form_state(session: Session, values: tuple[Any, ...]) -> list[Any]:
        """What follows from the form's values: terms, their box, the problem, the command."""
        terms = form.terms_html(str(values[0] or ""))
        head = [gr.update(value=terms, visible=bool(terms)), gr.update(visible=bool(terms))]
        try:
            spec = form.to_spec(values, local)
        except UserError as error:
            return [*head, gr.update(value=form.problem_html(str(error)), visible=True), gr.skip()]
        session.form = spec.run_id
        return [*head, gr.update(visible=False), gr.update(value=form.command_html(spec, local))]

    def edited(session: Session, request: gr.Request, *values: Any) -> list[Any]:
        session.visitor = access.visitor(request)
        return [*form_state(session, values), *page.render(session)]

    def opened(session: Session, run: str) -> list[Any]:
        """Look at a run, and let the form say its settings. Without a run the form is as it is when the page is new."""
        session.open(run)
        try:
            values = form.from_spec(store.get(run).spec if run else RunSpec.parse())
        except UserError:  # `render` says it
            values = form.from_spec(RunSpec.parse())
        return [*form.updates(values), *form_state(session, tuple(values)), *page.render(session)]

    def load(session: Session, request: gr.Request) -> list[Any]:
        session.visitor = access.visitor(request)
        session.sent.clear()
        page.follower.list.expire()
        return opened(session, str(request.query_params.get("run", "")))

    def pick(session: Session, event: gr.EventData) -> list[Any]:
        return opened(session, str(event.run))

    def start(session: Session, request: gr.Request, accepted: bool, *values: Any) -> list[Any]:
        session.visitor = access.visitor(request)
        try:
            access.check_open(request)
            spec = form.to_spec(values, local)
            if form.terms_html(spec.model):
                if not accepted:
                    raise UserError("This model has terms: read them and tick the box first.")
                accept_terms(spec.model)
            if page.status(spec.run_id) not in SHOWN:
                preview.check(spec)
            run = store.create(spec)
            if session.visitor.may_start(run):
                queue.submit(run)  # somebody else's is shown as it is
        except UserError as error:
            problem = gr.update(value=form.problem_html(str(error)), visible=True)
            return [gr.skip(), gr.skip(), problem, gr.skip(), *page.render(session)]
        session.open(run.id)
        return [*form_state(session, values), *page.render(session)]

    def upload(file: str, request: gr.Request, *values: Any) -> Any:
        """Choose the file, if it can be used; else all stays as it was, and the message stays until it is closed."""
        data = {name: value or None for name, value in zip(form.FIELDS, values, strict=True) if name in form.OWN}
        try:
            access.check_open(request)
            return form.uploaded(uploads.keep(Path(file), lambda path: preview.require_usable(path, data)))
        except UserError as error:
            raise gr.Error(str(error), duration=None, title="Not possible", print_exception=False) from None

    blocks.load(load, [session], [*fields.inputs, *state, *outputs], **LIGHT)
    for opener in page.openers:
        opener.pick(pick, [session], [*fields.inputs, *state, *outputs], **LIGHT)
    started = fields.start.click(start, [session, fields.terms, *fields.inputs], [*state, *outputs], **LIGHT)
    started.then(None, js=TOP_JS)
    gr.on(form.edits(fields.inputs), edited, [session, *fields.inputs], [*state, *outputs], **LIGHT)

    def change(act: Callable[..., None]) -> Callable[..., list[Any]]:
        """A handler that does something to the session, and renders. What is not possible is said."""

        def handler(session: Session, request: gr.Request, address: str, *values: Any) -> list[Any]:
            session.visitor = access.visitor(request)
            if address and not session.run:
                session.open(address)
            try:
                act(session, *values)
            except UserError as error:
                gr.Warning(str(error))
            return page.render(session)

        return handler

    def changing(act: Callable[..., None]) -> Callable[..., list[Any]]:
        """The same for what is done to the run, which not every visitor may."""

        def handler(session: Session, request: gr.Request, address: str, *values: Any) -> list[Any]:
            def checked(session: Session, *values: Any) -> None:
                act(access.check(request, store.get(session.run)), *values)

            return change(checked)(session, request, address, *values)

        return handler

    def questions(session: Session, names: list[str]) -> None:
        session.questions = names

    def filtered(session: Session, name: str) -> None:
        session.choice = Choice(name, session.choice.search)

    def searched(session: Session, words: str) -> None:
        session.choice = Choice(session.choice.filter, words)

    def turn(by: int, session: Session) -> None:
        session.choice = replace(session.choice, page=session.choice.page + by)

    def again(run: RunFolder, sure: bool) -> None:
        if sure:
            queue.submit(run, again=True)  # the worker forgets the result once it can begin

    def judge(run: RunFolder, model: str, url: str) -> None:
        queue.judge(run, judging.settings(model, url, local))

    def show_controls(session: Session, shown: bool) -> None:
        session.controls = shown

    def on(
        listener: Callable[..., Any], act: Callable[..., None], *inputs: Any, js: str = ADDRESS_JS, wrap: Any = change
    ) -> Any:
        return listener(wrap(act), [session, address, *inputs], outputs, js=js, **LIGHT)

    on(parts["timer"].tick, lambda session: None)
    for altered in page.altered:
        on(altered.then, lambda session: None)
    on(parts["questions"].input, questions, parts["questions"])
    on(parts["filter"].input, filtered, parts["filter"])
    on(parts["search"].change, searched, parts["search"])  # `input` says nothing of words that are all taken away
    on(parts["controls"].input, show_controls, parts["controls"])
    on(parts["judge-start"].click, judge, parts["judge-model"], parts["judge-url"], wrap=changing)
    on(parts["previous"].click, partial(turn, -1)).then(None, js=SCROLL_JS)
    on(parts["next"].click, partial(turn, 1)).then(None, js=SCROLL_JS)
    on(parts["stop"].click, queue.stop, wrap=changing)
    on(parts["resume"].click, queue.submit, wrap=changing)
    on(parts["again"].click, again, gr.Checkbox(visible=False), js=SURE_JS, wrap=changing)
    needs.wire(blocks, session, fields, local, **LIGHT)
    fixed = fields.need.fit(needs.fix, None, fields.named(*needs.FIXES), **LIGHT)
    fixed.then(edited, [session, *fields.inputs], [*state, *outputs], **LIGHT)
    given = fields.upload.upload(upload, [fields.upload, *fields.inputs], fields.named("benchmark"), **LIGHT)
    return given.success(edited, [session, *fields.inputs], [*state, *outputs], **LIGHT)


def _shut(session: Session) -> Any:
    session.preview = False
    return gr.update(visible=False)


def _wire_preview(
    session: gr.State, fields: form.Form, given: Any, shown: gr.Column, rows: gr.HTML, close: gr.Button, local: bool
) -> None:
    """Upload, and the preview: it opens on request or with an upload, and follows the form while it is open."""

    def look(session: Session, request: gr.Request, *values: Any) -> Iterator[list[Any]]:
        session.preview = True
        try:
            access.check_open(request)
            spec = form.to_spec(values, local)
            if not preview.is_quick(spec):
                yield [gr.update(visible=True), gr.update(value=preview.reading_html(spec.benchmark))]
            html = preview.html(preview.read(spec))
        except UserError as error:
            html = preview.problem_html(str(error))
        yield [gr.update(visible=True), gr.update(value=html)]

    def follow(session: Session, request: gr.Request, *values: Any) -> Iterator[list[Any]]:
        yield from look(session, request, *values) if session.preview else iter([[gr.skip(), gr.skip()]])

    outputs, inputs = [shown, rows], [session, *fields.inputs]
    fields.preview.click(look, inputs, outputs, **LIGHT).then(None, js=PREVIEW_JS)
    data = fields.named("benchmark", "holdout_topic", *form.DATA)
    gr.on(form.edits(data), follow, inputs, outputs, **LIGHT)
    close.click(_shut, [session], shown, **LIGHT)
    fields.start.click(_shut, [session], shown, **LIGHT)
    given.success(look, inputs, outputs, **LIGHT).then(None, js=PREVIEW_JS)
