"""The table of all runs: what it shows, finds, sorts, sends and does, and how long it takes. No browser, no model."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from spt import events as ev
from spt import queue
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from spt.ui import runs_table
from spt.ui.access import Visitor
from spt.ui.listed import Lister
from spt.ui.page import Page, Session
from spt.ui.runs_tab import RunsTab
from spt.ui.runs_table import View
from tests.many import many_runs
from tests.ui import samples


@pytest.fixture
def store(spt_home: Path) -> Store:
    return Store()


@pytest.fixture
def tab(store: Store) -> RunsTab:
    return RunsTab(store, Lister(store))


def look(tab: RunsTab, view: View) -> dict[str, Any]:
    """What a page is sent now; empty where it has it all."""
    tab.lister.expire()
    update = tab.render(view, samples.request())
    return dict(update.get("value", {}))


def act(tab: RunsTab, view: View, what: str, run: str = "", runs: tuple[str, ...] = ()) -> dict[str, Any]:
    tab.act(view, what, run, runs, samples.request())
    return look(tab, view)


def test_a_finished_run_is_one_row(tab: RunsTab, store: Store) -> None:
    folder = samples.finished(store)
    news = look(tab, View())
    row = news["rows"][folder.id]
    assert news["order"] == [folder.id] and news["count"] == "1 run" and not news["more"]
    assert f'href="?run={folder.id}" data-open="{folder.id}"' in row and "n = 45" in row and "steps 20" in row
    assert "<b>51\u202f%</b>" in row and "zero-shot 0\u202f%" in row and "3-shot 51\u202f%" in row
    assert 'aria-label="Exact match by step, from 0\u202f% to 100\u202f%"' in row and "1 min 37 s" in row
    assert f'href="/export/{folder.id}.zip"' in row and f'href="/report/{folder.id}.html"' in row
    assert 'data-alter="resume"' not in row


def test_no_run_yet_and_no_run_found(tab: RunsTab, store: Store) -> None:
    assert "No runs yet" in look(tab, View())["count"]
    samples.finished(store)
    assert "No run has all these words" in look(tab, View(query="no such thing"))["count"]


def test_a_run_without_probes_shows_its_loss(tab: RunsTab, store: Store) -> None:
    folder = store.create(RunSpec(probe_every=0))
    for event in samples.losses(7):
        folder.append(event)
    folder.append(ev.RunStopped())
    row = look(tab, View())["rows"][folder.id]
    assert 'aria-label="Loss by step, from 4 to 0.57"' in row and "step 7 of 80" in row
    assert 'data-alter="resume"' in row and "/export/" not in row


def test_every_word_of_the_query_must_be_there(tab: RunsTab, store: Store) -> None:
    made = [store.create(RunSpec(model=m, benchmark=b, seed=s)) for m, b, s in
            (("gemma-3-270m", "capitals", 0), ("gemma-3-270m", "trivia", 0), ("bundled", "trivia", 3))]  # fmt: skip
    made[1].append(ev.RunStopped())

    def found(query: str) -> set[str]:
        return set(look(tab, View(query=query))["order"])

    first, second, third = (folder.id for folder in made)
    assert found("gemma") == {first, second} and found("GEMMA trivia") == found("trivia  gemma") == {second}
    assert found("stopped") == {second} and found("smollm2") == {third} and found("seed 3") == {third}
    assert found(third[-6:]) == {third} and found("") == {first, second, third}


def test_columns_sort_both_ways_and_what_is_missing_stands_last(tab: RunsTab, store: Store) -> None:
    closed, waiting = samples.finished(store, closed=True), store.create(RunSpec(benchmark="arithmetic"))
    view = View()
    look(tab, view)
    assert act(tab, view, "sort", "benchmark")["order"] == [waiting.id, closed.id]
    assert act(tab, view, "sort", "benchmark")["order"] == [closed.id, waiting.id]
    news = act(tab, view, "sort", "exact_match")
    assert (news["by"], news["down"]) == ("exact_match", True) and news["rows"] == {}, "a page keeps the rows it has"
    assert view.by == "exact_match" and act(tab, view, "sort", "exact_match")["order"][-1] == waiting.id
    assert act(tab, view, "sort", "<script>") == {}, "no column of that name"


def test_only_what_is_new_is_sent(tab: RunsTab, store: Store) -> None:
    still, folder = samples.finished(store), store.create(RunSpec(benchmark="trivia"))
    view = View()
    assert set(look(tab, view)["rows"]) == {still.id, folder.id}
    assert look(tab, view) == {}
    folder.append(samples.losses(1)[0])
    news = look(tab, view)
    assert set(news["rows"]) == {folder.id} and len(json.dumps(news)) < 4000
    assert set(act(tab, view, "all")["rows"]) == {still.id, folder.id}, "a page that has nothing yet"


def test_a_status_that_no_file_of_the_run_tells_is_seen(tab: RunsTab, store: Store) -> None:
    folder = store.create(RunSpec())
    view = View()
    assert "Not started" in look(tab, view)["rows"][folder.id]
    queue.submit(folder)
    assert "Waiting" in look(tab, view)["rows"][folder.id]
    with folder.lock():
        assert "Running" in look(tab, view)["rows"][folder.id]


def test_unreadable_runs_stand_there_with_their_sentence(tab: RunsTab, store: Store) -> None:
    good, bad, old, torn = (store.create(RunSpec(seed=seed)) for seed in range(4))
    samples.finished(store)
    (bad.path / "result.json").write_text("{<b>")
    (old.path / "spec.json").write_text('{"schema": 9}')
    (torn.path / "spec.json").write_bytes(b"\xff")
    view = View()
    news = look(tab, view)
    assert set(news["order"]) >= {good.id, bad.id, old.id, torn.id} and "3 of them" not in news["count"]
    assert news["count"] == "5 runs, 2 of them unreadable"
    assert "is damaged" in news["rows"][bad.id] and "another version of spt" in news["rows"][old.id]
    assert "is damaged" in news["rows"][torn.id] and all("Unreadable" in news["rows"][f.id] for f in (bad, old, torn))
    assert "data-open" not in news["rows"][old.id], "there is nothing to open"
    assert set(look(tab, View(query="UNREADABLE -"))["order"]) == {bad.id, old.id, torn.id}
    (bad.path / "events.jsonl").write_bytes(b'{"type":"probe",\n\xff\n')
    assert set(look(tab, View())["order"]) == set(news["order"])


def test_deleting_takes_two_clicks(tab: RunsTab, store: Store) -> None:
    folder, other = samples.finished(store), samples.finished(store, closed=True)
    view = View()
    assert "Really delete?" not in look(tab, view)["rows"][folder.id]
    news = act(tab, view, "doubt", folder.id)
    assert set(news["rows"]) == {folder.id}
    row = news["rows"][folder.id]
    assert row.index("Really delete?") < row.index("Cancel"), "Cancel is where Delete was: a double click is harmless"
    assert look(tab, view) == {} and view.asked, "looking on does not take the question back"
    assert "Really delete?" not in act(tab, view, "keep", folder.id)["rows"][folder.id]
    act(tab, view, "doubt", folder.id)
    assert act(tab, view, "delete", folder.id)["order"] == [other.id] and not folder.path.exists()
    with pytest.raises(UserError, match="There is no run"):
        tab.act(view, "delete", "../../etc", (), samples.request())


def test_a_running_run_is_not_deleted(tab: RunsTab, store: Store) -> None:
    folder = store.create(RunSpec())
    with folder.lock(), pytest.raises(UserError, match="is running; stop it first"):
        tab.act(View(), "delete", folder.id, (), samples.request())
    assert folder.path.exists()


def test_the_page_of_a_deleted_run_says_so(tab: RunsTab, store: Store) -> None:
    page = Page(store)
    page.parts = dict.fromkeys(["run", "runs", "start", "body"])
    folder = samples.finished(store)
    session = Session(run=folder.id)
    assert "body" in page.wanted(session)
    tab.act(View(), "delete", folder.id, (), samples.request())
    for _ in range(2):
        wanted = page.wanted(session)
        assert "it was deleted" in str(wanted["run"]) and "body" not in wanted


def test_resume_and_the_right_to_it(tab: RunsTab, store: Store) -> None:
    folder = store.create(RunSpec())
    folder.append(ev.RunStopped())
    assert "Waiting" in act(tab, View(), "resume", folder.id)["rows"][folder.id]
    queue.cancel(folder.id)
    refused = ((Visitor("someone"), "Only who started this run"), (Visitor(read_only=True), "nothing can be"))
    for stranger, why in refused:
        row = tab.render(View(), samples.request(stranger))["value"]["rows"][folder.id]
        assert "data-alter" not in row and "Delete" not in row
        for what in ("resume", "delete"):
            with pytest.raises(UserError, match=why):
                tab.act(View(), what, folder.id, (), samples.request(stranger))
    folder.claim("someone")
    assert "Delete" in tab.render(View(), samples.request(Visitor("someone")))["value"]["rows"][folder.id]
    assert folder.path.exists() and queue.position(folder.id) is None


def test_comparing_needs_two_finished_runs_of_one_benchmark(tab: RunsTab, store: Store) -> None:
    first, closed = samples.finished(store), samples.finished(store, closed=True)
    second = RunFolder(first.path.with_name("second"), first.spec)
    shutil.copytree(first.path, second.path)
    stopped = store.create(RunSpec(seed=5))
    view = View()

    def choice(*folders: RunFolder) -> str:
        act(tab, view, "choose", runs=tuple(folder.id for folder in folders))
        return str(view.state["choice"])

    assert choice() == ""
    assert "Choose another run of capitals" in choice(first) and "aria-disabled" in choice(first)
    assert "capitals and capitals-mc have no items in common" in choice(first, closed)
    assert "not finished" in choice(first, stopped) and "?compare" not in choice(first, stopped)
    both = choice(first, second)
    assert f'href="?compare={first.id},second"' in both and "aria-disabled" not in both
    second_gone = act(tab, view, "delete", "second")
    assert "1 run chosen" in second_gone["choice"]


def test_hostile_settings_stay_text(tab: RunsTab, store: Store) -> None:
    folder = store.create(RunSpec(model="a/<img src=x>", benchmark="x/<script>.csv", holdout_topic='"><b>'))
    row = look(tab, View(query="<script>"))["rows"][folder.id]
    assert "<img" not in row and "<script" not in row and '"><b>' not in row


def test_two_hundred_runs_are_quick(store: Store) -> None:
    many_runs(200)
    lister, view = Lister(store), View()
    tab = RunsTab(store, lister)

    def seconds() -> float:
        began = time.perf_counter()
        tab.render(view, samples.request())
        return time.perf_counter() - began

    cold = seconds()
    assert len(view.sent) == runs_table.MORE and len(json.dumps(view.sent)) < 150_000
    warm = []
    for _ in range(5):
        lister.expire()
        warm.append(seconds())
    assert cold < 1.5 and min(warm) < 0.2, (cold, warm)
    assert seconds() < 0.1, "pages share one look at the folders"
    assert view.state["count"] == "200 runs, 10 of them unreadable"
    tab.act(view, "more", "", (), samples.request())
    assert len(tab.render(view, samples.request())["value"]["order"]) == 2 * runs_table.MORE
