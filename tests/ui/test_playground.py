"""The Playground without a browser: what is shown for a question and its reply, and what the handlers do."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from spt import questions
from spt.questions import Ask, Reply, Said
from spt.spec import METHODS, RunSpec
from spt.store import RunFolder, Store
from spt.ui import answers, app, asked
from spt.ui.page import Page
from spt.ui.playground import Play, Playground
from tests.ui import samples

HOSTILE = samples.HOSTILE


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def tab(store: Store) -> Playground:
    with gr.Blocks():
        return Playground(Page(store))


def html(updates: list[Any]) -> str:
    """Of the answer, which every handler gives third last."""
    return str(updates[-3].get("value"))


def cancel_visible(updates: list[Any]) -> bool:
    return bool(updates[-2]["visible"])


def timer(updates: list[Any]) -> tuple[bool, float]:
    return updates[-1]["active"], updates[-1]["value"]


def done(logprobs: tuple[float, ...] = ()) -> Reply:
    said = Said(text=HOSTILE, stopped_by="loop", in_format=False, knows=True, exact_match=False, logprobs=logprobs)
    return Reply(state="done", said={**dict.fromkeys(METHODS, said), "soft_prompt": said.model_copy(
        update={"text": "B. Rome", "stopped_by": "eos", "in_format": True, "exact_match": True}
    )})  # fmt: skip


# ---- HTML


def test_a_question_has_its_columns_from_the_moment_it_is_asked(store: Store) -> None:
    folder = samples.finished(store)
    ask = Ask.of(folder, f"Why? {HOSTILE}")
    begun = asked.answer_html(ask, None, 3)
    assert begun.count('class="reply') == 3 and "Reference" not in begun
    growing = asked.answer_html(ask, Reply(state="answering", said={"few_shot": Said(text=HOSTILE)}), 3)
    assert growing.count("caret") == 1 and growing.count(">…<") == 2
    for text in (begun, growing, asked.answer_html(ask, done(), 3)):
        assert "<script" not in text and "<img" not in text and "&lt;script&gt;" in text


def test_marks_say_right_only_where_it_is_known(store: Store) -> None:
    folder = samples.finished(store)
    ask = Ask.of(folder, "Why?", reference="Rome")
    marked = asked.answer_html(ask, done(), 3)
    assert marked.count(">right<") == 3 and marked.count("not in format") == 2 and marked.count(" hit") == 1
    assert "stopped: repeats itself" in marked and "Reference" in marked
    said = Said(text="", stopped_by="eos", in_format=False)
    unmarked = asked.answer_html(Ask.of(folder, "Why?"), Reply(state="done", said=dict.fromkeys(METHODS, said)), 3)
    assert "right" not in unmarked and unmarked.count("not in format") == 3 and "(empty answer)" in unmarked


def test_options_are_ranked_by_log_p_with_the_highest_marked(store: Store) -> None:
    folder = samples.finished(store, closed=True)
    ask = Ask.of(folder, "Where?", ["Oslo", "<b>Rome</b>", "Lima"])
    shown = asked.answer_html(ask, done((-3.25, -1.5, -9.0)), 3)
    assert shown.count('<ol class="ranks">') == 3 and shown.count("class=best") == 3 and "<b>Rome" not in shown
    best = shown.split("class=best")[1].split("</li>")[0]
    assert "B. &lt;b&gt;Rome&lt;/b&gt;" in best and "<b>−1.50</b> 85\u202f%" in best and "width:85.2%" in best
    assert "exact match" in shown and "ranked first" in shown and "log p in nats" in shown


def test_waiting_says_behind_what() -> None:
    assert "Starting" in asked.before_html(0, "", 0)
    assert "Waiting for 1 run before this one: capitals · m is at work" in asked.before_html(1, "capitals · m", 0)
    assert "Waiting for 1 run and 2 questions before this one: &lt;b&gt; is at work" in asked.before_html(1, "<b>", 2)


def test_examples_are_questions_on_which_the_methods_differ() -> None:
    rows = samples.predictions(9)
    rows["few_shot"][4] = rows["few_shot"][4].model_copy(update={"knows": False, "exact_match": False})
    rows["soft_prompt"][1] = rows["zero_shot"][1]
    rows["few_shot"][1] = rows["zero_shot"][1]
    items = asked.telling(answers.join(rows))
    ids = [item.any.id for item in items]
    assert len(ids) == 3 and {"item0", "item4"} <= set(ids) and "item1" not in ids
    shown = asked.examples_html(items, 3)
    assert shown.count("data-example=") == 3 and "<script" not in shown and "methods differ" in shown
    alike = asked.telling(answers.join(dict.fromkeys(METHODS, rows["soft_prompt"])))
    assert len(alike) == 3 and "Test questions of this run" in asked.examples_html(alike, 3)
    assert asked.telling(answers.join({"zero_shot": rows["zero_shot"]})) == [] and asked.examples_html([], 3) == ""


# ---- handlers


def test_without_a_finished_run_there_is_nothing_to_fill_in(tab: Playground, store: Store) -> None:
    store.create(RunSpec())
    updates = tab._opened(Play(), "")
    assert "There is none yet" in updates[0]["value"]
    assert not any(update["visible"] for update in updates[1:6]) and timer(updates)[0] is False


def test_the_newest_finished_run_is_asked_unless_the_address_names_one(tab: Playground, store: Store) -> None:
    first, closed = samples.finished(store), samples.finished(store, closed=True)
    play = Play()
    updates = tab._load(play, SimpleNamespace(query_params={"run": first.id}))  # type: ignore[arg-type]
    assert updates[1]["value"] == first.id == play.run and len(updates[1]["choices"]) == 2
    assert updates[3]["visible"] is False, "no options to choose from"
    assert tab._load(Play(), SimpleNamespace(query_params={"run": "gone"}))[1]["value"] == closed.id  # type: ignore[arg-type]
    updates = tab._choose(play, closed.id)
    assert updates[3]["visible"] is True and "data-example" in updates[6]["value"]


def test_a_question_is_followed_from_asking_to_the_end(tab: Playground, store: Store) -> None:
    folder = samples.finished(store)
    play = Play(run=folder.id)
    updates = tab._ask(play, folder.id, "Why?", "", "")
    assert "Starting" in html(updates) and cancel_visible(updates) and timer(updates) == (True, 0.25)
    [ask_id] = questions.waiting()
    questions.tell(ask_id, Reply(state="loading", note="Getting the model ready"))
    assert "Getting the model ready …" in html(tab._tick(play))
    questions.tell(ask_id, Reply(state="answering", said={"zero_shot": Said(text="Beca")}))
    assert "Answering …" in html(updates := tab._tick(play)) and "Beca" in html(updates)
    assert all(update == gr.skip() for update in tab._tick(play)), "nothing new, nothing sent"
    questions.tell(ask_id, done())
    questions.close(ask_id)
    updates = tab._tick(play)
    assert "Answered." in html(updates) and not cancel_visible(updates) and timer(updates)[0] is False
    assert questions.reply(ask_id) is None, "nothing is left"


def test_two_visitors_do_not_see_each_others_questions(tab: Playground, store: Store) -> None:
    folder = samples.finished(store)
    one, two = Play(), Play()
    tab._ask(one, folder.id, "Mine?", "", "")
    updates = tab._ask(two, folder.id, "Yours?", "", "")
    assert "Waiting for 1 question before this one …" in html(updates) and timer(updates) == (True, 1.0)
    mine, _ = questions.waiting()
    questions.tell(mine, Reply(state="answering", said={"zero_shot": Said(text="secret")}))
    assert all(update == gr.skip() for update in tab._tick(two)), "it still waits, and is not told so again"
    assert "secret" in html(tab._tick(one)) and "secret" not in html(tab._render(two))
    tab._cancel(two)
    assert questions.waiting() == [mine]


def test_a_new_question_takes_the_old_one_back(tab: Playground, store: Store) -> None:
    folder = samples.finished(store)
    play = Play()
    tab._ask(play, folder.id, "First?", "", "")
    tab._ask(play, folder.id, "Second?", "", "")
    [ask_id] = questions.waiting()
    asked_now = questions.read(ask_id)
    assert asked_now is not None and asked_now.example.question == "Second?"
    updates = tab._cancel(play)
    assert "Cancelled." in html(updates) and not cancel_visible(updates) and not questions.waiting()
    assert tab._opened(play, folder.id)[-3] == updates[-3], "coming back to the tab changes nothing"


def test_what_cannot_be_asked_is_one_sentence(tab: Playground, store: Store) -> None:
    folder, closed = samples.finished(store), samples.finished(store, closed=True)
    cases: list[tuple[tuple[str, str, str, str], str]] = [
        ((folder.id, " ", "", ""), "There is no question"),
        ((folder.id, "x" * 2_000_000, "", ""), "at most 8,000 are taken"),
        ((closed.id, "Which?", "one", ""), "give 2 to 10 options"),
        ((closed.id, "Which?", "one\none", ""), "Two options are the same"),
        (("nowhere", "Which?", "", ""), "There is no run"),
    ]
    for fields, words in cases:
        updates = tab._ask(Play(), *fields)
        assert words in html(updates) and 'role="alert"' in html(updates) and not cancel_visible(updates)
    assert questions.waiting() == []
    # The options of another run do not stand in the way of one without.
    assert "Starting" in html(tab._ask(Play(), folder.id, "Why?", "one\ntwo", ""))


def test_a_failure_and_a_question_of_long_ago_are_told(tab: Playground, store: Store) -> None:
    folder = samples.finished(store)
    play = Play()
    tab._ask(play, folder.id, "Why?", "", "")
    [ask_id] = questions.waiting()
    questions.tell(ask_id, Reply(state="failed", note="The <b>worker</b> ended.", said={"zero_shot": Said(text="so")}))
    questions.close(ask_id)
    assert "The &lt;b&gt;worker&lt;/b&gt; ended." in html(updates := tab._tick(play)) and "so" in html(updates)
    tab._ask(play, folder.id, "Why?", "", "")
    questions.clean(kept=-1)
    assert "waited too long and was given up" in html(tab._tick(play)) and not play.pending


def test_an_example_fills_the_form_and_is_asked(tab: Playground, store: Store) -> None:
    folder = samples.finished(store, closed=True)
    play = Play(run=folder.id)
    updates = tab._example(play, SimpleNamespace(item="item2"))  # type: ignore[arg-type]
    row = folder.predictions("zero_shot")[2]
    assert updates[:3] == [row.question, "\n".join(row.options), row.target]
    asked_now = questions.read(questions.waiting()[0])
    assert asked_now is not None and asked_now.marked and asked_now.example.question == row.question
    assert "not there any more" in html(tab._example(play, SimpleNamespace(item="gone")))  # type: ignore[arg-type]


def test_a_run_deleted_meanwhile(tab: Playground, store: Store) -> None:
    kept, doomed = samples.finished(store), samples.finished(store, closed=True)
    play = Play(run=doomed.id)
    tab._ask(play, doomed.id, "Which?", "one\ntwo", "")
    shutil.rmtree(doomed.path)
    assert "Starting" in html(tab._tick(play)), "its answer will say so"
    assert "There is no run" in html(tab._ask(play, doomed.id, "Which?", "one\ntwo", ""))
    tab.page.follower.list.expire()
    assert tab._refresh(play)[1]["value"] == kept.id == play.run


def test_runs_of_one_name_are_told_apart(tab: Playground, store: Store) -> None:
    first = samples.finished(store)
    second = RunFolder(store.root / "capitals-bundled-other1", first.spec)
    shutil.copytree(first.path, second.path)
    labels = [label for label, _ in tab._opened(Play(), "")[1]["choices"]]
    assert len(set(labels)) == 2 and any(label.endswith("other1") for label in labels)


def test_the_tab_is_part_of_the_page(store: Store) -> None:
    labels = [each["props"].get("label") for each in app.build(store).config["components"]]
    assert "Playground" in labels and "Reference answer" in labels
