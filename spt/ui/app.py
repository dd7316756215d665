"""The wiring of the page: which event changes what. All state is the run folder and, a session, what it looks at.

Every handler changes the `Session`, or asks the queue for something, and renders: `Page.render` sends only what the
browser does not have yet. A timer does the same once a second while the run is live, and seldom while it waits to be
resumed. Closing the page ends nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr

from spt import queue
from spt.presets import accept_terms
from spt.spec import RunSpec, UserError
from spt.store import Store
from spt.ui import answers, form, live
from spt.ui.page import LIVE_POLL, Page, Session

CHART = '<div class="plot"></div>'
CHART_JS = "window.spt.chart(element, props, watch)"
# The run in the address bar goes along with every event: after a restart of the server the session is new, and the page
# that is still open says what it was looking at.
ADDRESS_JS = "(session, address, ...rest) => [session, new URL(location).searchParams.get('run') || '', ...rest]"
SURE_JS = (
    "(session, address, sure) => [session, new URL(location).searchParams.get('run') || '', "
    "confirm('Forget this result and make the run anew?')]"
)
# Up to the run after Start, unless the form has something to say.
TOP_JS = "() => { if (!document.querySelector('.problem')) window.scrollTo({top: 0, behavior: 'smooth'}) }"
SCROLL_JS = "() => document.querySelector('#compare').scrollIntoView({behavior: 'smooth'})"
# Light events: they wait for nobody, show no spinner, and a newer one replaces an older that has not run yet.
LIGHT: dict[str, Any] = {
    "show_progress": "hidden",
    "concurrency_limit": None,
    "trigger_mode": "always_last",
    "api_visibility": "private",
}


def build(store: Store) -> gr.Blocks:
    """The page over the run folders of a store."""
    page = Page(store)
    with gr.Blocks(title="spt", analytics_enabled=False, fill_width=True) as blocks:
        session = gr.State(Session())
        address = gr.Textbox(visible=False)
        gr.HTML(live.header_html(), js_on_load="window.spt.theme(element)")
        with gr.Row(elem_id="frame"):
            with gr.Column(elem_id="side"):
                fields = form.build("window.spt.copy(element)")
                page.parts["runs"] = gr.HTML(js_on_load="window.spt.links(element, trigger) /* 'pick' */")
            with gr.Column(elem_id="main"):
                _run_column(page.parts)
        gr.HTML(live.footer_html())
        page.parts["timer"] = gr.Timer(LIVE_POLL, active=False)
        _wire(blocks, page, session, address, fields)
    return blocks


def _run_column(parts: dict[str, Any]) -> None:
    """The parts of a run, from its title down to the answers."""
    parts["run"] = gr.HTML(js_on_load="window.spt.follow(element, watch)")
    with gr.Row(elem_id="actions"):
        parts["stop"] = gr.Button("Stop", visible=False, elem_id="stop")
        parts["resume"] = gr.Button("Resume", variant="primary", visible=False, elem_id="resume")
        parts["again"] = gr.Button("Run again", visible=False, elem_id="again")
    with gr.Column(visible=False, elem_id="body") as parts["body"]:
        parts["scores"] = gr.HTML(visible=False)
        parts["facts"] = gr.HTML()
        with gr.Column(visible=False, elem_id="charts") as parts["charts"]:
            with gr.Column(elem_classes="card"):
                parts["legend"] = gr.HTML()
                parts["probe"] = gr.HTML({}, html_template=CHART, js_on_load=CHART_JS, elem_id="probe-chart")
            with gr.Column(elem_classes="card"):
                gr.HTML("<h3>Training loss</h3>")
                parts["loss"] = gr.HTML({}, html_template=CHART, js_on_load=CHART_JS, elem_id="loss-chart")
        parts["letters"] = gr.HTML(visible=False)
        with gr.Column(visible=False, elem_id="watch") as parts["watch"]:
            gr.HTML('<div class="section"><h3>Watch an answer change</h3></div>')
            parts["question"] = gr.Dropdown(
                [], label="Question", show_label=False, elem_id="question-pick", interactive=True, container=False
            )
            parts["timeline"] = gr.HTML()
        with gr.Column(visible=False, elem_id="compare") as parts["compare"]:
            gr.HTML('<div class="section"><h3>Answers side by side</h3></div>')
            parts["filter"] = gr.Radio(
                [(f.label, name) for name, f in answers.FILTERS.items()],
                value="all",
                label="Show",
                show_label=False,
                container=False,
                elem_id="filters",
                interactive=True,
            )
            parts["answers"] = gr.HTML(elem_id="answers")
            with gr.Row(visible=False, elem_id="pager") as parts["pager"]:
                parts["previous"] = gr.Button("← Previous", elem_id="previous")
                parts["where"] = gr.HTML()
                parts["next"] = gr.Button("Next →", elem_id="next")


def _wire(blocks: gr.Blocks, page: Page, session: gr.State, address: gr.Textbox, fields: form.Form) -> None:
    store, parts = page.store, page.parts
    state = [fields.terms_text, fields.terms, fields.problem, fields.command]
    parts["start"] = fields.start
    outputs = page.outputs()

    def form_state(session: Session, values: tuple[Any, ...]) -> list[Any]:
        """What follows from the form's values: terms, their box, the problem, the command."""
        terms = form.terms_html(str(values[0] or ""))
        head = [gr.update(value=terms, visible=bool(terms)), gr.update(visible=bool(terms))]
        try:
            spec = form.to_spec(values)
        except UserError as error:
            return [*head, gr.update(value=form.problem_html(str(error)), visible=True), gr.skip()]
        session.form = spec.run_id
        return [*head, gr.update(visible=False), gr.update(value=form.command_html(spec))]

    def edited(session: Session, *values: Any) -> list[Any]:
        return [*form_state(session, values), *page.render(session)]

    def opened(session: Session, run: str) -> list[Any]:
        """Look at a run, and let the form say its settings. Without a run the form is as it is when the page is new."""
        session.open(run)
        try:
            values = form.from_spec(store.get(run).spec if run else RunSpec.parse())
        except UserError:  # `render` says it
            values = form.from_spec(RunSpec.parse())
        return [*values, *form_state(session, tuple(values)), *page.render(session)]

    def load(session: Session, request: gr.Request) -> list[Any]:
        session.sent.clear()
        page.follower.expire()
        return opened(session, str(request.query_params.get("run", "")))

    def pick(session: Session, event: gr.EventData) -> list[Any]:
        return opened(session, str(event.run))

    def start(session: Session, accepted: bool, *values: Any) -> list[Any]:
        try:
            spec = form.to_spec(values)
            if form.terms_html(spec.model):
                if not accepted:
                    raise UserError("This model has terms: read them and tick the box first.")
                accept_terms(spec.model)
            run = store.create(spec)
            queue.submit(run)
        except UserError as error:
            problem = gr.update(value=form.problem_html(str(error)), visible=True)
            return [gr.skip(), gr.skip(), problem, gr.skip(), *page.render(session)]
        session.open(run.id)
        return [*form_state(session, values), *page.render(session)]

    blocks.load(load, [session], [*fields.inputs, *state, *outputs], **LIGHT)
    parts["runs"].pick(pick, [session], [*fields.inputs, *state, *outputs], **LIGHT)
    started = fields.start.click(start, [session, fields.terms, *fields.inputs], [*state, *outputs], **LIGHT)
    started.then(None, js=TOP_JS)
    gr.on([each.input for each in fields.inputs], edited, [session, *fields.inputs], [*state, *outputs], **LIGHT)

    def change(act: Callable[..., None]) -> Callable[..., list[Any]]:
        """A handler that does something to the session or its run, and renders. What is not possible is said."""

        def handler(session: Session, address: str, *values: Any) -> list[Any]:
            if address and not session.run:
                session.open(address)
            try:
                act(session, *values)
            except UserError as error:
                gr.Warning(str(error))
            return page.render(session)

        return handler

    def question(session: Session, name: str) -> None:
        session.question = name

    def filtered(session: Session, name: str) -> None:
        session.filter, session.page = name, 1

    def turn(by: int, session: Session) -> None:
        session.page += by

    def stop(session: Session) -> None:
        queue.stop(store.get(session.run))

    def resume(session: Session) -> None:
        queue.submit(store.get(session.run))

    def again(session: Session, sure: bool) -> None:
        if sure:
            run = store.get(session.run)
            run.reset()
            queue.submit(run)

    def on(listener: Callable[..., Any], act: Callable[..., None], *inputs: Any, js: str = ADDRESS_JS) -> Any:
        return listener(change(act), [session, address, *inputs], outputs, js=js, **LIGHT)

    on(parts["timer"].tick, lambda session: None)
    on(parts["question"].input, question, parts["question"])
    on(parts["filter"].input, filtered, parts["filter"])
    on(parts["previous"].click, partial(turn, -1)).then(None, js=SCROLL_JS)
    on(parts["next"].click, partial(turn, 1)).then(None, js=SCROLL_JS)
    on(parts["stop"].click, stop)
    on(parts["resume"].click, resume)
    on(parts["again"].click, again, gr.Checkbox(visible=False), js=SURE_JS)
