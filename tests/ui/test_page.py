"""What the page shows for a run folder, and that it sends only what changed. No browser, no model."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spt import events as ev
from spt import queue
from spt.metrics import Verdict
from spt.spec import RunSpec
from spt.store import Notice, RunFolder, Store
from spt.ui import answers, app, form
from spt.ui.answers import Choice
from spt.ui.page import Page, Session
from tests.finished import finished_run
from tests.ui import samples

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(spt_home: Path) -> Store:
    return Store()


@pytest.fixture
def page(store: Store) -> Page:
    page = Page(store)
    page.parts = dict.fromkeys(
        ["runs", "start", "run", "stop", "resume", "again", "body", "scores", "charts", "compare", "answers", "timer"]
    )
    return page


def part(page: Page, session: Session, name: str) -> dict[str, object]:
    return page.wanted(session).get(name, {"visible": False})


def test_web_process_imports_no_torch() -> None:
    code = "import sys, spt.ui.serve; print(sorted({'torch', 'transformers', 'plotly'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_nothing_in_the_page_comes_from_elsewhere() -> None:
    from spt.ui import theme

    assert theme.plotly_js().is_file()
    assert "http" not in theme.head() and "http" not in theme.css() and "@import" not in theme.css()


def test_page_builds(store: Store) -> None:
    assert app.build(store).config["components"]


def test_start_refuses_what_is_wrong_before_there_is_a_run(store: Store) -> None:
    start = next(each.fn for each in app.build(store).fns.values() if each.name == "start")
    session = Session()

    def press(**changes: object) -> str:
        values = dict(zip(form.FIELDS, form.from_spec(RunSpec()), strict=True)) | changes
        return str(start(session, samples.request(), False, *values.values())[2]["value"])

    assert "There is no model" in press(model="/nowhere/at-all")
    assert "There is no file" in press(benchmark="/nowhere/questions.csv")
    assert "no topic &#x27;Mars&#x27;" in press(holdout_topic="Mars")
    assert not store.runs() and not queue.entries() and not session.run
    finished = store.create(RunSpec(model="/gone/since"))
    (finished.path / "result.json").write_text("{}")
    values = form.from_spec(finished.spec)
    start(session, samples.request(), False, *values)
    assert session.run == finished.id, "a finished run is shown, whatever has become of its model"


def test_before_the_first_run(page: Page) -> None:
    assert "knowledge, or format" in str(part(page, Session(), "run"))
    assert part(page, Session(), "timer") == {"active": False}


def test_unknown_run_says_so(page: Page) -> None:
    session = Session(run="../../etc")
    assert "There is no run" in str(part(page, session, "run")) and "body" not in page.wanted(session)


@pytest.mark.parametrize("closed", [False, True])
def test_finished_run(page: Page, store: Store, closed: bool) -> None:
    folder = samples.finished(store, closed)
    wanted = page.wanted(Session(run=folder.id, form=folder.id))
    assert wanted["again"]["visible"] and not wanted["stop"]["visible"] and not wanted["timer"]["active"]
    assert wanted["start"] == {"value": "Show the result"}
    assert ("letters" in wanted) == closed
    assert "0.0043\u202f%" in wanted["facts"]["value"]
    assert f'href="answers/{folder.id}/soft_prompt.jsonl"' in wanted["facts"]["value"]
    assert f'href="report/{folder.id}.html"' in wanted["exports"]["value"]
    assert "51\u202f%" in wanted["runs"]["value"]


def test_only_changes_are_sent(page: Page, store: Store) -> None:
    session = Session(run=samples.finished(store).id)
    assert any("value" in update for update in page.render(session))
    assert all(update == {"__type__": "update"} for update in page.render(session))


def test_every_status_has_its_buttons_and_words(page: Page, store: Store) -> None:
    folder = store.create(RunSpec())
    session = Session(run=folder.id)
    assert "exports" not in page.wanted(session)

    def shown() -> tuple[str, list[str], bool]:
        wanted = page.wanted(session)
        seconds = wanted["timer"]["value"]
        assert seconds == (1 if "running" in wanted["run"]["value"] or "queued" in wanted["run"]["value"] else 5)
        buttons = [name for name in ("stop", "resume", "again") if wanted[name]["visible"]]
        return str(wanted["run"]["value"]), buttons, bool(wanted["timer"]["active"])

    queue.submit(folder)
    queue.stop(folder)
    html, buttons, live = shown()
    assert "Not started" in html and buttons == [] and live, "Start is the one button of a new run"
    assert page.wanted(Session(run=folder.id, form=folder.id))["start"] == {"value": "Start"}
    queue.submit(folder)
    html, buttons, live = shown()
    assert "Waiting" in html and buttons == ["stop"] and live
    other = store.create(RunSpec(seed=1))
    queue.submit(other)
    assert "1 run before this one" in str(part(page, Session(run=other.id), "run"))
    queue.cancel(folder.id)
    with folder.lock():
        _begin(folder)
        html, buttons, live = shown()
        assert "Running" in html and "Loading the model" in html and buttons == ["stop"] and live
        folder.request_stop()
        assert page.wanted(session)["stop"] == {"visible": True, "value": "Stopping …", "interactive": False}
    html, buttons, live = shown()
    assert "Interrupted" in html and buttons == ["resume"] and live
    folder.append(ev.RunStopped())
    html, buttons, live = shown()
    assert "Stopped" in html and buttons == ["resume"] and live
    folder.append(ev.RunFailed(message="There is no <model> here."))
    html, buttons, live = shown()
    assert "There is no &lt;model&gt; here." in html and buttons == ["resume"] and live, "another page may resume it"
    finished = samples.finished(store, closed=True)
    assert not page.wanted(Session(run=finished.id))["timer"]["active"]


def test_a_finished_run_that_waits_says_so_and_keeps_its_result(page: Page, store: Store) -> None:
    folder = samples.finished(store)
    session = Session(run=folder.id)
    page.parts |= dict.fromkeys(["notice", "judge"])
    assert "notice" not in page.wanted(session) and "judge" in page.wanted(session)
    queue.submit(folder, again=True)
    wanted = page.wanted(session)
    assert "made anew" in str(wanted["notice"]) and not wanted["again"]["visible"] and wanted["timer"]["active"]
    assert wanted["stop"]["value"] == "Cancel" and "Finished" in str(wanted["run"]) and "judge" not in wanted
    queue.stop(folder)
    assert page.wanted(session)["again"]["visible"]
    queue.judge(folder, {"model": "j"})
    assert "Waiting to be judged" in str(part(page, session, "notice"))
    folder.note(Notice(done=3, total=135))
    wanted = page.wanted(session)
    assert "read 3 of 135 answers" in str(wanted["notice"]) and not wanted["stop"]["visible"]
    queue.cancel(folder.id)
    folder.note(Notice(problem="The judge <j> is dead."))
    wanted = page.wanted(session)
    assert "The judge &lt;j&gt; is dead." in str(wanted["notice"]) and not wanted["timer"]["active"]
    assert wanted["again"]["visible"] and "judge" in wanted


def test_a_result_from_before_there_was_an_analysis_gets_one(page: Page, store: Store) -> None:
    folder = samples.finished(store, closed=True)
    result = folder.result()
    assert result is not None and result.analysis is None
    wanted = page.wanted(Session(run=folder.id))
    assert "What this run shows" in wanted["findings"]["value"] and "format tax" in wanted["cells"]["value"]


def test_controls_stand_beside_on_request(page: Page, store: Store) -> None:
    folder = samples.finished(store)
    session = Session(run=folder.id)
    assert not page.wanted(session)["controls"]["visible"]
    items = answers.join(samples.predictions(2) | {"shuffled": samples.predictions(2)["zero_shot"]})
    choice = answers.Choice()
    found = answers.choose(items, choice)
    assert answers.controls(items) == ["shuffled"]
    assert answers.side_by_side(found, choice, 3).count('class="reply') == 6
    assert answers.side_by_side(found, choice, 3, answers.controls(items)).count('class="reply') == 8


def test_the_judges_word_stands_beside_the_rules() -> None:
    rows = samples.predictions(3)
    said = {"zero_shot": [Verdict(id=f"item{i}", key="", correct=c, in_format=c, reply="") for i, c in
                          enumerate((False, None, True))]}  # fmt: skip
    items = answers.join(rows, said)
    found = answers.choose(items, answers.Choice())
    html = answers.side_by_side(found, answers.Choice(), 3)
    assert html.count("judge: not right") == html.count("judge: unreadable") == html.count("judge: right") == 1
    assert answers.choices(items, found)[-1] == ("Judge disagrees · 1", "disputed")
    assert len(answers.choices(answers.join(rows), found)) == 4


def test_a_run_made_anew_forgets_its_answers(page: Page, store: Store) -> None:
    folder = samples.finished(store)
    session = Session(run=folder.id)
    assert "compare" in page.wanted(session)
    folder.reset()
    assert "compare" not in page.wanted(session) and "scores" not in [
        name for name, value in page.wanted(session).items() if name == "scores" and value["visible"]
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b'{"schema": 9}', "another version of spt"), (b"\xff", "is damaged"), (b"{}", "another version of spt")],
)
def test_one_unreadable_result_does_not_hide_the_rest(page: Page, store: Store, content: bytes, words: str) -> None:
    good, bad = samples.finished(store), samples.finished(store, closed=True)
    (bad.path / "result.json").write_bytes(content)
    runs = str(page.wanted(Session(run=good.id))["runs"])
    assert good.id in runs and bad.id in runs and "<small>unreadable</small>" in runs
    for _ in range(2):  # opening it a second time says the same
        shown = page.wanted(Session(run=bad.id))
        assert words in str(shown["run"]) and "body" not in shown


def test_a_deleted_run_is_said_to_be_gone(page: Page, store: Store) -> None:
    folder = samples.finished(store)
    session = Session(run=folder.id)
    page.render(session)
    folder.delete()
    assert "There is no run" in str(part(page, session, "run"))


def _begin(folder: RunFolder) -> None:
    folder.append(ev.RunStarted(run=folder.id))
    folder.append(ev.PhaseStarted(phase="load"))


def test_a_run_without_probes_has_no_chart_of_them(store: Store, page: Page) -> None:
    for every, card in ((10, {}), (0, {"visible": False})):
        folder = store.create(RunSpec(probe_every=every))
        folder.append(ev.StepLoss(step=1, loss=1, learning_rate=0.1, grad_norm=1, seconds=1, time=1))
        assert part(page, Session(run=folder.id), "probe-card") == card
        assert part(page, Session(run=folder.id), "charts") == {}


def test_a_thousand_items_open_and_turn_quickly(store: Store, page: Page, tmp_path: Path) -> None:
    """In seconds of the processor, which a busy machine does not stretch."""
    rows = [json.dumps({"question": f"What is number {i} called? " * 5, "answer": f"word {i}"}) for i in range(5000)]
    (tmp_path / "many.jsonl").write_text("\n".join(rows))

    def respond(method: str, number: int, item: object) -> str:
        return f"It is said to be called word {number - number % 3} in most of the places where anybody asked. " * 4

    folder = finished_run(RunSpec(benchmark=str(tmp_path / "many.jsonl"), items=1000), respond)
    session = Session(run=folder.id)

    def seconds() -> float:
        start = time.process_time()
        page.render(session)
        return time.process_time() - start

    assert seconds() < 1
    choices = (Choice(page=2), Choice(page=50), Choice("wrong"), Choice("all", "word 7"), Choice(search="asked"))
    assert len(page.follower.get(folder.id).items) == 1000
    for choice in choices:
        session.choice = choice
        assert seconds() < 0.3, choice
    assert len(str(page.wanted(session)["answers"])) < 150_000, "what is sent for a page of answers"
