"""The tab "Playground": a question of one's own, put to a finished run. Its answers stream in from the worker.

A question goes to the worker as a small file and comes back as one (`spt.questions`); a timer looks at it four times a
second while it is being answered, and seldom while it waits. Its id is known to the session that asked alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from spt import questions, queue
from spt.questions import Ask, Reply
from spt.runner import device_user
from spt.spec import METHODS, UserError
from spt.ui import answers, asked
from spt.ui.follow import Shown
from spt.ui.listed import Listed
from spt.ui.live import model_title
from spt.ui.page import LIGHT, Page
from spt.ui.text import benchmark_title

WRITING_POLL, WAITING_POLL = 0.25, 1.0  # seconds
EXAMPLES_JS = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-example]");
  if (button) trigger("pick", { item: button.dataset.example });
});
"""
IDEA = (
    '<div class="play-idea"><h2>Ask it yourself</h2><p class="sub">The model of a finished run answers your question '
    "as it is, after worked examples, and with the tuned prompt, by the rules of the run.</p></div>"
)
NO_RUNS = (
    '<div class="play-idea"><h2>Ask it yourself</h2><p class="sub">Here a finished run answers your own questions. '
    "There is none yet: start one in the tab Run, in a few minutes it can be asked.</p></div>"
)
ANSWER_JS = """() => { if (innerWidth < 1000)
  document.querySelector('#play-answer')?.scrollIntoView({behavior: 'smooth', block: 'start'}) }"""


@dataclass
class Play:
    """What one open page asks, and what it has been told."""

    run: str = ""
    ask_id: str = ""  # empty = nothing is being asked
    ask: Ask | None = None  # the question that is shown
    reply: Reply | None = None
    problem: str = ""
    cancelled: bool = False
    sent: tuple[str, bool] = ("", False)

    @property
    def pending(self) -> bool:
        return bool(self.ask_id)

    def cancel(self) -> None:
        """Take the question back, if it is still being answered."""
        if self.ask_id:
            questions.close(self.ask_id)
            questions.forget(self.ask_id)
            self.ask_id, self.cancelled = "", True

    def begin(self, ask: Ask) -> None:
        self.cancel()
        self.ask, self.reply, self.problem, self.cancelled = ask, None, "", False
        self.ask_id = questions.submit(ask)

    def fail(self, problem: str) -> None:
        self.cancel()
        self.ask, self.reply, self.problem, self.cancelled = None, None, problem, False

    def look(self) -> None:
        """Take in what the worker has said since."""
        if not self.ask_id:
            return
        waits = questions.is_open(self.ask_id)  # first: one that is closed then has all its reply
        reply = questions.reply(self.ask_id)
        self.reply = reply or self.reply
        if not waits:
            questions.forget(self.ask_id)
            self.ask_id = ""
            if reply is None or reply.state not in ("done", "failed"):
                self.problem = "The question waited too long and was given up: ask it again."
            elif reply.state == "failed":
                self.problem = reply.note


class Playground:
    """The components of the tab and their handlers."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.play = gr.State(Play())
        with gr.Row(elem_id="play"):
            with gr.Column(elem_id="play-form"):
                self.idea = gr.HTML(NO_RUNS)
                self.run = gr.Dropdown([], label="Run", elem_id="play-run", visible=False, interactive=True)
                self.question = gr.Textbox(
                    label="Question", lines=1, max_lines=8, visible=False, elem_id="play-question", interactive=True
                )
                self.options = gr.Textbox(
                    label="Options, one a line", lines=4, max_lines=10, visible=False, elem_id="play-options",
                    interactive=True,
                )  # fmt: skip
                self.reference = gr.Textbox(
                    label="Reference answer", info="Optional: marks right and wrong", visible=False,
                    elem_id="play-reference", interactive=True,
                )  # fmt: skip
                with gr.Row(elem_id="play-actions"):
                    self.ask = gr.Button("Ask", variant="primary", visible=False, elem_id="play-ask")
                    self.cancel = gr.Button("Cancel", visible=False, elem_id="play-cancel")
            with gr.Column(elem_id="play-main"):
                self.answer = gr.HTML(visible=False, elem_id="play-answer")
                self.examples = gr.HTML(js_on_load=EXAMPLES_JS + "/* 'pick' */", elem_id="play-examples")
        self.timer: Any = gr.Timer(WRITING_POLL, active=False)
        self.fields = [self.run, self.question, self.options, self.reference]
        self.shown = [self.answer, self.cancel, self.timer]
        self.about = [self.idea, self.run, self.question, self.options, self.reference, self.ask, self.examples]

    def wire(self, blocks: gr.Blocks, tab: gr.Tab) -> None:
        """Connect everything."""
        blocks.load(self._load, self.play, [*self.about, *self.shown], **LIGHT)
        tab.select(self._refresh, self.play, [*self.about, *self.shown], **LIGHT)
        self.run.input(self._choose, [self.play, self.run], [*self.about, *self.shown], **LIGHT)
        asking = gr.on([self.ask.click, self.question.submit, self.reference.submit], self._ask,
                       [self.play, *self.fields], self.shown, **LIGHT)  # fmt: skip
        asking.then(None, js=ANSWER_JS)
        examples: Any = self.examples
        picked = examples.pick(self._example, self.play, [*self.fields[1:], *self.shown], **LIGHT)
        picked.then(None, js=ANSWER_JS)
        self.cancel.click(self._cancel, self.play, self.shown, **LIGHT)
        self.timer.tick(self._tick, self.play, self.shown, **LIGHT)

    # ---- handlers

    def _load(self, play: Play, request: gr.Request) -> list[Any]:
        return self._opened(play, str(request.query_params.get("run", "")))

    def _refresh(self, play: Play) -> list[Any]:
        return self._opened(play, play.run)

    def _choose(self, play: Play, run: str) -> list[Any]:
        return self._opened(play, run)

    def _opened(self, play: Play, run: str) -> list[Any]:
        """Ask this run from now on; the newest where it is not there (any more)."""
        runs = self.page.follower.list.now().runs
        finished = [each for each in runs if each.status == "finished" and not each.problem]
        ids = [each.id for each in finished]
        chosen = run if run in ids else ids[0] if ids else ""
        if chosen != play.run:
            play.cancel()
            play.run, play.ask, play.reply, play.problem = chosen, None, None, ""
        shown = self._shown(chosen)
        closed = shown is not None and any(row.options for row in shown.predictions.get("zero_shot", ()))
        examples = ""
        if shown is not None:
            examples = asked.examples_html(asked.telling(_items(shown)), shown.folder.spec.shots)
        there = bool(chosen)
        return [
            gr.update(value=IDEA if there else NO_RUNS),
            gr.update(choices=_choices(finished), value=chosen or None, visible=there),
            gr.update(visible=there),
            gr.update(visible=closed),
            gr.update(visible=there),
            gr.update(visible=there),
            gr.update(value=examples),
            *self._render(play),
        ]

    def _ask(self, play: Play, run: str | None, question: str, options: str, reference: str) -> list[Any]:
        try:
            folder = self.page.store.get(run or play.run)
            shown = self._shown(folder.id)
            closed = shown is not None and any(row.options for row in shown.predictions.get("zero_shot", ()))
            # The box of a multiple-choice run keeps its text while another run is asked.
            listed = (options or "").splitlines() if closed else []
            play.run = folder.id
            play.begin(Ask.of(folder, question or "", listed, reference or ""))
        except UserError as error:
            play.fail(str(error))
        return self._render(play)

    def _example(self, play: Play, event: gr.EventData) -> list[Any]:
        """Fill a test question of the run into the form, and ask it."""
        shown = self._shown(play.run)
        item = next((i for i in _items(shown) if i.any.id == str(event.item)), None) if shown else None
        if item is None:
            play.fail("This question is not there any more: choose another, or another run.")
            return [gr.skip()] * 3 + self._render(play)
        row = item.any
        options, reference = "\n".join(row.options), row.target if row.options else row.answer
        filled = [row.question, options, reference]
        return [*filled, *self._ask(play, play.run, row.question, options, reference)]

    def _cancel(self, play: Play) -> list[Any]:
        play.cancel()
        return self._render(play)

    def _tick(self, play: Play) -> list[Any]:
        before = play.sent
        play.look()
        updates = self._render(play)
        return [gr.skip()] * len(updates) if play.sent == before else updates

    # ---- what is shown

    def _shown(self, run: str) -> Shown | None:
        try:
            return self.page.follower.get(run) if run else None
        except UserError:
            return None

    def _render(self, play: Play) -> list[Any]:
        html = self._html(play)
        play.sent = (html, play.pending)
        poll = WRITING_POLL if play.reply is not None or not self._before(play) else WAITING_POLL
        return [
            gr.update(value=html, visible=bool(html)),
            gr.update(visible=play.pending),
            gr.update(active=play.pending, value=poll),
        ]

    def _html(self, play: Play) -> str:
        if play.ask is None:
            return asked.problem_html(play.problem) if play.problem else ""
        state, reply = "", play.reply
        if play.problem:
            state = asked.problem_html(play.problem)
        elif play.cancelled:
            state = asked.state_html("Cancelled.")
        elif reply is None:
            state = asked.before_html(*(self._before(play) or (0, "", 0)))
        elif reply.state == "loading":
            state = asked.state_html(f"{reply.note.rstrip(' .…')} …", True)
        else:
            state = asked.state_html("Answered." if reply.state == "done" else "Answering …", reply.state != "done")
        shown = self._shown(play.ask.run)
        return state + asked.answer_html(play.ask, reply, shown.folder.spec.shots if shown else 0)

    def _before(self, play: Play) -> tuple[int, str, int] | None:
        """The run that is worked at, its name, and the questions before this one; None where nothing is."""
        waiting = questions.waiting()
        ahead = waiting.index(play.ask_id) if play.ask_id in waiting else 0
        holder = device_user()
        run = holder.run if holder is not None and not holder.ask else ""
        # A judge elsewhere is asked without the device, and the worker waits for it all the same.
        run = run or next((entry.run for entry in queue.entries()[:1] if entry.judge), "")
        if not run:
            return (0, "", ahead) if ahead else None
        try:
            spec = self.page.store.get(run).spec
            run = f"{benchmark_title(spec.benchmark)} · {model_title(spec.model)}"
        except UserError:
            pass  # deleted: its id says enough
        return 1, run, ahead


def _items(shown: Shown) -> list[answers.Item]:
    return answers.join({method: shown.predictions.get(method, ()) for method in METHODS})


def _choices(runs: list[Listed]) -> list[tuple[str, str]]:
    """Finished runs by name; those of the same name are told apart by the end of their id."""
    names = [f"{benchmark_title(run.spec.benchmark)} · {model_title(run.spec.model)}" for run in runs]
    labels = []
    for run, name in zip(runs, names, strict=True):
        labels.append((f"{name} · {run.id[-6:]}" if names.count(name) > 1 else name, run.id))
    return labels
