"""The tab that compares runs: what it shows, filters, marks, sends and says, and how long it takes. No browser."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from spt import events as ev
from spt.compare import MARKS
from spt.spec import RunSpec
from spt.store import RunFolder, Store
from spt.ui import compare_tab
from spt.ui.compare_tab import CompareTab, Look
from spt.ui.page import Page
from spt.ui.theme import ASSETS
from tests.compared import BASE, POST, altered, looping, run, without
from tests.ui import samples
from tests.ui.samples import HOSTILE


@pytest.fixture
def store(spt_home: Path) -> Store:
    return Store()


@pytest.fixture
def tab(store: Store) -> CompareTab:
    with gr.Blocks():
        return CompareTab(Page(store))


def look(*folders: RunFolder, **more: Any) -> Look:
    return Look(runs=tuple(folder.id for folder in folders), **more)


def shown(tab: CompareTab, state: Look) -> dict[str, Any]:
    tab.page.follower.list.expire()
    return tab.wanted(state)


def value(parts: dict[str, Any], name: str) -> str:
    return str(parts[name]["value"])


def test_two_runs_side_by_side(tab: CompareTab) -> None:
    first, second = run(items=24), run(POST, items=24)
    parts = shown(tab, look(first, second))
    head, rates = value(parts, "head"), value(parts, "rates")
    assert f'data-compared="{first.id},{second.id}"' in head and "24 items, the same for all" in head
    assert "With the soft prompt, exact match is" in head and "<em>reference</em>" in head
    assert rates.count("<tbody>") == 3 + 1 and rates.count('class="against') == 9 and "Qwen/Qwen3-0.6B-Base" in rates
    assert "problem" not in parts and parts["timer"]["active"] is False
    chart = parts["chart"]["value"]
    colours = {trace["line"]["color"] for trace in chart["data"] if "color" in trace["line"]}
    assert colours == {"--run-a", "--run-b"} and len({trace["line"].get("dash") for trace in chart["data"]}) > 1
    assert parts["reference"]["choices"] == [("A", first.id), ("B", second.id)]


def test_another_reference_turns_the_differences(tab: CompareTab) -> None:
    first, second = run(), run(POST)
    rates = [value(shown(tab, look(first, second, reference=each.id)), "rates") for each in (first, second)]
    signs = [re.findall(r'<span class="against[^>]*><b>([−+]?)\d', html) for html in rates]
    assert signs[0] == [{"+": "−", "−": "+", "": ""}[sign] for sign in signs[1]] and "+" in signs[0]


def test_the_four_ways_and_their_filters(tab: CompareTab) -> None:
    first, second = run(items=24), run(POST, items=24)
    looping(first, 3)
    state = look(second, first)
    parts = shown(tab, state)
    ways = value(parts, "ways")
    assert parts["base"]["value"] == first.id and parts["post"]["value"] == second.id, "by name, in either order"
    assert parts["view"]["value"] == "four" and "filter" not in parts and ways.count("<figure") == 4
    numbers = [int(n) for n in re.findall(r"</span><b>(\d+)</b>", ways)]
    assert len(numbers) == 16 and [sum(numbers[i : i + 4]) for i in (0, 4, 8, 12)] == [24] * 4 and numbers[3] == 1
    assert all(f"<span>{words}</span>" in ways for words in MARKS.values()), "marks are words too"

    tab.mark(state, 0, "not_captured")
    parts = shown(tab, state)
    assert f"<b>{numbers[1]} questions</b>" in value(parts, "items") and 'aria-pressed="true"' in value(parts, "ways")
    assert value(parts, "items").count("right, not captured") >= min(10, numbers[1])
    tab.mark(state, 1, "captured")
    both = shown(tab, state)
    assert state.choice.marks == ((0, "not_captured"), (1, "captured")) and "question" in value(both, "items")
    for column, mark in ((0, "not_captured"), (1, "captured"), (7, "wrong"), (0, "<script>")):
        tab.mark(state, column, mark)
    assert state.choice.marks == (), "pressed again is no longer pressed, and nonsense presses nothing"
    tab.mark(state, 0, "loops")
    assert value(shown(tab, state), "items").count("↻") == 1


def test_the_reader_says_which_model_is_which(tab: CompareTab) -> None:
    first, second, third = run("a/one"), run("b/two"), run("c/three")
    state = look(first, second, third)
    parts = shown(tab, state)
    assert "choose which is which" in value(parts, "ways") and parts["view"]["value"] == "soft_prompt"
    assert ("Four ways", "four") not in parts["view"]["choices"]
    tab.pair(state, base=second.id)
    assert "choose which is which" in value(shown(tab, state), "ways")
    tab.pair(state, post=first.id)
    parts = shown(tab, state)
    ways = value(parts, "ways")
    assert parts["view"]["value"] == "four" and 0 < ways.index("<small>two</small>") < ways.index("<small>one</small>")
    tab.pair(state, post=second.id)
    assert (state.base, state.post) == (first.id, second.id), "the one that is said to be both takes the other's place"


def test_a_pair_by_name_can_be_turned_round(tab: CompareTab) -> None:
    first, second = run(), run(POST)
    state = look(first, second)
    tab.pair(state, base=second.id)
    assert (state.base, state.post) == (second.id, first.id)
    first, second = run("a/one"), run("b/two")
    state = look(first, second)
    tab.pair(state, post=first.id)
    assert (state.base, state.post) == (second.id, first.id), "of two, the other one is the other"


def test_filters_search_and_pages(tab: CompareTab) -> None:
    first, second = run(items=30), run("bundled", items=30)
    without(second, 0)
    state = look(first, second, view="soft_prompt")
    parts = shown(tab, state)
    counts = {name: int(label.split(" · ")[1]) for label, name in parts["filter"]["choices"]}
    assert counts["all"] == 30 and counts["some"] == 1 and 0 < counts["one"] < 30
    assert parts["pager"]["visible"] and "page 1 of 3 · 1–10 of 30" in value(parts, "where")
    for name, number in counts.items():
        tab._choose(state, filter=name)
        words = f"<b>{number} question{'' if number == 1 else 's'}</b>" if number else "No question"
        assert words in value(shown(tab, state), "items"), name
    tab._choose(state, filter="all", search="CAPITAL peru")
    assert value(shown(tab, state), "items").count("<article") <= 1
    tab._choose(state, search="no such word <b>")
    assert "No question with “no such word &lt;b&gt;”" in value(shown(tab, state), "items")
    tab._choose(state, search="", page=99)
    assert "page 3 of 3" in value(shown(tab, state), "where") and state.choice.page == 3


def test_a_live_run_is_followed_while_the_tab_is_open(tab: CompareTab, store: Store) -> None:
    whole, source = run(), run("bundled")
    folder = store.create(RunSpec(model=POST, items=16))
    state = look(whole, folder, open=True)
    with folder.lock():
        folder.append(ev.RunStarted(run=folder.id))
        parts = shown(tab, state)
        assert "has no answers yet" in value(parts, "problem") and parts["timer"]["active"] and "body" not in parts
        rows = source.predictions("zero_shot")
        folder.append(ev.PhaseStarted(phase="zero_shot", total=16))
        folder.append(ev.Predictions("zero_shot", tuple(rows[:6])))
        folder.append(ev.Progress(phase="zero_shot", done=6, total=16))
        parts = shown(tab, state)
        assert "Not finished: run B (running, 6 items answered)" in value(parts, "head")
        assert "Running" in value(parts, "head")
        folder.append(ev.Predictions("zero_shot", tuple(rows[6:9])))
        folder.append(ev.Progress(phase="zero_shot", done=9, total=16))
        assert "9 items answered by all" in value(shown(tab, state), "head")
        state.open = False
        assert shown(tab, state)["timer"]["active"] is False


def test_what_cannot_be_compared_is_said(tab: CompareTab, store: Store) -> None:
    first, second, other = run(), run(POST), run(benchmark="trivia")

    def problem(*ids: str, **more: Any) -> str:
        parts = shown(tab, Look(runs=ids, **more))
        return value(parts, "problem").replace("&#x27;", "'") if "problem" in parts else ""

    assert "There is no run 'nothing'" in problem(first.id, "nothing")
    assert "There is no run '../../etc'" in problem("../../etc", "a") and "<script>" not in problem("<script>", "a")
    assert "capitals and trivia have no items in common" in problem(first.id, other.id)
    twice = shown(tab, look(first, second, first))
    assert "is there twice" in value(twice, "problem") and "body" in twice, "the others are compared all the same"
    assert problem(first.id) == ""
    assert "Choose another run of capitals" in value(shown(tab, look(first)), "idea")
    seven = [run(seed=i, items=2).id for i in range(2, 9)]
    assert "choose at most 6" in problem(*seven)
    damaged = run(seed=20, items=2)
    (damaged.path / "result.json").write_text("{")
    assert "is damaged" in problem(first.id, damaged.id)


def test_a_run_deleted_meanwhile_is_said(tab: CompareTab) -> None:
    first, second, third = run(), run(POST), run(seed=9)
    state = look(first, second, third)
    assert "problem" not in shown(tab, state)
    second.delete()
    parts = shown(tab, state)
    assert "not there any more: it was deleted" in value(parts, "problem") and "body" in parts
    third.delete()
    parts = shown(tab, state)
    assert value(parts, "problem").count("it was deleted") == 2 and "body" not in parts


def test_choosing_without_the_table(tab: CompareTab, store: Store) -> None:
    assert "There is no finished run yet" in value(shown(tab, Look()), "idea")
    first = run()
    assert "no two of one benchmark yet" in value(shown(tab, Look()), "idea")
    second, other, stopped = run(POST), run(benchmark="trivia"), store.create(RunSpec(seed=7))
    stopped.append(ev.RunStopped())
    parts = shown(tab, Look())
    offered = [name for _, name in parts["pick"]["choices"]]
    assert set(offered) == {first.id, second.id, other.id}
    assert f'data-compare="{first.id},{second.id}"' in value(parts, "idea")
    offered = [name for _, name in shown(tab, look(first))["pick"]["choices"]]
    assert set(offered) == {first.id, second.id}, "then only runs of its benchmark"


def test_hostile_answers_and_settings_stay_text(tab: CompareTab, store: Store) -> None:
    folder = samples.finished(store)
    spec = folder.spec.model_copy(update={"model": "a/<img src=x>"})
    copy = RunFolder(folder.path.with_name("copy"), spec)
    shutil.copytree(folder.path, copy.path)
    (copy.path / "spec.json").write_text(json.dumps({"schema": 1, "spec": spec.model_dump()}))
    parts = shown(tab, look(folder, copy))
    html = "".join(str(part.get("value", "")) for name, part in parts.items() if name not in ("pick", "chart", "key"))
    assert "Question 1?" in html and "<script" not in html and "<img" not in html and HOSTILE not in html
    assert "<img" not in value(parts, "key")


def test_only_what_changed_is_sent(tab: CompareTab) -> None:
    state = look(run(items=24), run(POST, items=24))
    tab.render(state)
    assert all(update == gr.skip() for update in tab.render(state))
    tab._turn(state, 1)
    changed = [name for name, update in zip(tab.parts, tab.render(state), strict=True) if update != gr.skip()]
    assert set(changed) == {"items", "previous", "where"}


def test_a_thousand_items_page_quickly(tab: CompareTab, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [run(), run(POST)]
    for folder in folders:
        for method in ("zero_shot", "few_shot", "soft_prompt"):
            rows = folder.predictions(method)
            many = [rows[i % 16].model_copy(update={"id": f"i{i}", "question": f"Question {i}?"}) for i in range(1000)]
            folder.write_predictions(method, many)
    state = look(*folders)

    def seconds() -> float:
        began = time.perf_counter()
        tab.render(state)
        return time.perf_counter() - began

    cold = seconds()
    assert "1,000 items, the same for all" in str(state.sent["head"])
    warm = []
    for page in range(2, 6):
        tab._choose(state, page=page)
        warm.append(seconds())
    tab._choose(state, search="question 77")
    warm.append(seconds())
    assert cold < 3 and min(warm) < 0.2, (cold, warm)
    size = sum(len(str(part)) for part in state.sent.values())
    assert size < 120_000, size


def test_more_runs_than_bands_are_lines_alone_and_six_have_six_styles(tab: CompareTab) -> None:
    parts = shown(tab, look(*(run(seed=i, items=4) for i in range(6))))
    data = parts["chart"]["value"]["data"]
    assert not any("fill" in trace for trace in data) and "exact match goes from" in value(parts, "head")
    styles = {(trace["line"]["dash"], trace["marker"]["symbol"]) for trace in data if "marker" in trace}
    assert len(styles) == 6 and len({trace["line"]["color"] for trace in data}) == 6
    css = (ASSETS / "compare.css").read_text()
    palette = (ASSETS / "spt.css").read_text()
    for letter in "bcdef":  # the first is the ink of the page
        found = re.findall(rf"--run-{letter}: (#\w+)", css)
        assert len(found) == 2 and not any(tone in palette for tone in found), "no colour of a method"


def test_the_judge_does_not_tilt_a_comparison(tab: CompareTab) -> None:
    """One run judged and the other not: knowledge stays that of the rule in both."""
    first, second = run(), run(POST)
    altered(first, "soft_prompt", lambda i, row: {"knows": i < 8})
    rates = value(shown(tab, look(first, second)), "rates")
    assert "50\u202f%" in rates and "also where a run has been judged" in rates


def test_names_of_runs_tell_them_apart(store: Store, tab: CompareTab) -> None:
    run(), run(seed=2)
    runs = tab.page.follower.list.now().runs
    names = [name for name, _ in compare_tab._choices(runs, ())]
    assert len(set(names)) == 2 and any("seed 2" in name for name in names) and BASE.split("/")[1][:5] in names[0]
