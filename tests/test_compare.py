"""Runs compared: rates, paired differences, settings, pairs of models, marks, and what cannot be compared. No model."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from pytest import CaptureFixture
from typer.testing import CliRunner

from spt import stats
from spt.analysis import METRICS
from spt.cli import app
from spt.compare import (
    RunComparison,
    Side,
    check_ids,
    check_specs,
    compare_runs,
    find_pair,
    four_ways,
    labels,
    mark,
    settings_that_differ,
    shared_items,
    unfinished,
)
from spt.events import RunStarted
from spt.metrics import Rate
from spt.pairs import is_pair
from spt.spec import METHODS, RunSpec, UserError
from spt.store import RunFolder, Store
from tests.compared import BASE, POST, looping, run, without
from tests.predictions import row


def sides(*folders: RunFolder) -> list[Side]:
    return [Side.of(folder) for folder in folders]


def test_rates_and_differences_are_those_of_the_statistics() -> None:
    first, second = sides(run(), run(POST))
    found = compare_runs([first, second])
    assert found.shared == 16 and [line.letter for line in found.runs] == ["A", "B"] and len(found.cells) == 2 * 3 * 3
    for method in METHODS:
        cell = found.cell(second.id, method, "knowledge")
        a, b = ({name: r.knows for name, r in side.answers[method].items()} for side in (first, second))
        assert cell is not None and cell.rate == Rate.of(b.values()) and cell.paired == stats.compare(a, b)
        reference = found.cell(first.id, method, "knowledge")
        assert reference is not None and reference.paired is None and reference.left_out == 0
    turned = compare_runs([first, second], second.id)
    cell, back = found.cell(second.id, "zero_shot", "format"), turned.cell(first.id, "zero_shot", "format")
    assert cell and back and cell.paired and back.paired and cell.paired.difference == -back.paired.difference != 0
    assert RunComparison.model_validate_json(found.model_dump_json()) == found


def test_items_that_only_one_run_answered_are_counted_and_left_out() -> None:
    first, second = run(), run(POST, items=12)
    without(first, 0, 1)
    found = compare_runs(sides(first, second))
    assert found.shared == 10 and [line.alone for line in found.runs] == [4, 2]
    for metric in METRICS:
        cell = found.cell(second.id, "zero_shot", metric)
        assert cell is not None and cell.paired is not None
        assert (cell.rate.n, cell.paired.n, cell.left_out) == (12, 10, 6)


def test_only_settings_that_differ_and_labels_from_them() -> None:
    found = sides(run(), run(seed=3), run(seed=4, steps=40))
    assert settings_that_differ([side.spec for side in found]) == {"steps": ("80", "80", "40"), "seed": ("0", "3", "4")}
    assert labels(found) == ["steps 80, seed 0", "steps 80, seed 3", "steps 40, seed 4"]
    assert labels([found[0], found[0]]) == [found[0].id[-6:]] * 2
    assert labels(sides(run(), run(POST))) == ["Qwen3 0.6B Base", "Qwen3 0.6B"]


@pytest.mark.parametrize(
    ("base", "post"),
    [
        (BASE, POST),
        ("HuggingFaceTB/SmolLM2-135M", "bundled"),
        ("gemma-3-270m", "google/gemma-3-270m-it"),
        ("org/X", "other/X-Instruct"),
        ("x/X-pt", "x/X-it"),
        ("X", "X-chat"),
        ("mistralai/Mistral-7B-v0.1", "mistralai/Mistral-7B-Instruct-v0.1"),
        ("meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-chat-hf"),
        ("/models/gemma-3-270m.Q4_K_M.gguf", "/models/gemma-3-270m-it-Q8_0.gguf"),
    ],
)
def test_a_base_model_and_its_post_trained_one_are_a_pair(base: str, post: str) -> None:
    assert is_pair(base, post) and not is_pair(post, base)


@pytest.mark.parametrize(
    ("a", "b"), [(BASE, BASE), (POST, POST), ("X", "X"), ("X-0.5B", "X-1B-Instruct"), ("X-Instruct", "X-chat"),
                 ("bundled", "bundled"), (BASE, "Qwen/Qwen2.5-0.5B-Instruct")],
)  # fmt: skip
def test_these_are_none(a: str, b: str) -> None:
    assert not is_pair(a, b) and not is_pair(b, a)


def test_of_several_pairs_the_one_with_the_most_alike_settings() -> None:
    other, base, post = sides(run(POST, seed=5), run(), run(POST))
    assert find_pair([other, base, post]) == (base, post) and find_pair([post, other]) is None


def test_the_four_marks() -> None:
    assert mark(row(0, True, True)) == "captured"
    assert mark(row(0, True, False)) == "not_captured"
    assert mark(row(0, False, True)) == mark(row(0, False, False)) == "wrong"
    loops = {"stopped_by": "loop"}
    assert mark(row(0, False, False).model_copy(update=loops)) == "loops"
    assert mark(row(0, True, False).model_copy(update=loops)) == "loops"
    assert mark(row(0, True, True).model_copy(update=loops)) == "captured", "the score counts it"
    # Closed: the ranking knows it, the letter that was written is another.
    assert mark(row(0, True, True, "B", exact=False)) == "not_captured"


def test_four_ways_count_every_shared_item_once() -> None:
    first, second = run(), run(POST, items=12)
    looping(first, 3)
    base, post = sides(first, second)
    items = shared_items(base, post)
    assert len(items) == 12
    for way in four_ways(base, post):
        counts = way.counts(items)
        scored = sum(r.exact_match for name, r in way.answers.items() if name in items)
        assert sum(counts.values()) == 12 and counts["captured"] == scored
    assert four_ways(base, post)[0].counts(items)["loops"] == 1


def test_an_unfinished_run_is_compared_as_far_as_it_is(spt_home: object) -> None:
    whole = run()
    folder = Store().create(RunSpec(model=POST, items=16))
    folder.append(RunStarted(run=folder.id))
    with pytest.raises(UserError, match="has no answers yet"):
        compare_runs(sides(whole, folder))
    folder.write_predictions("zero_shot", run("bundled").predictions("zero_shot")[:5])
    found = compare_runs(sides(whole, folder))
    assert found.shared == 5 and unfinished(found) == (
        "Not finished: run B (interrupted, 5 items answered). What has been answered so far is compared."
    )
    assert found.cell(folder.id, "soft_prompt", "format") is None
    assert unfinished(compare_runs(sides(whole, run("bundled")))) == ""


def test_what_cannot_be_compared_is_one_sentence() -> None:
    with pytest.raises(UserError, match="is there twice"):
        check_ids(["a", "b", "a"])
    with pytest.raises(UserError, match="needs two runs"):
        check_ids(["a"])
    with pytest.raises(UserError, match="at most 6"):
        check_ids(list("abcdefg"))
    with pytest.raises(UserError, match="capitals and trivia have no items in common"):
        check_specs([RunSpec(), RunSpec(benchmark="trivia")])
    first, second = run(items=4), run(POST, items=4)
    without(first, 0, 1)
    without(second, 2, 3)
    with pytest.raises(UserError, match="answered no question in common"):
        compare_runs(sides(first, second))


def test_command_line(capsys: CaptureFixture[str]) -> None:
    first, second = run(), run(POST)
    shown = CliRunner().invoke(app, ["compare", first.id, second.id])
    assert shown.exit_code == 0 and "A Qwen3 0.6B Base (reference)" in shown.stdout and "Soft prompt" in shown.stdout
    assert "Four ways" in shown.stdout and "right, not captured" in shown.stdout
    found = json.loads(CliRunner().invoke(app, ["compare", first.id, second.id, "--json"]).stdout)
    assert found["reference"] == first.id and found["settings"] == {"model": [BASE, POST]}
    said = CliRunner().invoke(app, ["compare", first.id, "nothing"])
    assert isinstance(said.exception, UserError) and "There is no run 'nothing'" in str(said.exception)


def test_comparing_imports_no_torch() -> None:
    code = "import sys, spt.compare, spt.cli_compare, spt.ui.compare_tab; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
