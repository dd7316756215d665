"""What the Rankings tab shows of run folders, and that it reads them once. No browser, no model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spt import rank_sources
from spt.rank_choice import Entry
from spt.rank_curves import courses
from spt.ranking import OVERALL
from spt.spec import METHODS
from spt.store import Store
from spt.ui import app, rank_html, rankings_tab
from spt.ui.rankings_tab import Board, render
from tests import twins
from tests.ui.samples import HOSTILE


@pytest.fixture
def board(spt_home: Path) -> Board:
    return Board(Store())


def shown(board: Board, benchmark: str = OVERALL, **more: str) -> dict[str, dict]:
    board._read = float("-inf")  # as if the last look was long ago
    return render(board, more.get("score", "exact_match"), more.get("against", "zero_shot"), benchmark)  # type: ignore[arg-type]


def test_page_builds_with_the_tab(spt_home: Path) -> None:
    labels = [part["props"].get("label") for part in app.build(Store()).config["components"]]
    assert "Rankings" in labels


def test_without_pairs_it_says_what_is_needed_and_how_to_make_it(board: Board) -> None:
    parts = shown(board)
    assert set(parts) == {"head", "needed"}
    needed = parts["needed"]["value"]
    assert "python -m spt sweep sweep.yaml" in needed and "There is no pair" in needed


def test_what_the_page_tells_to_write_is_a_sweep_of_three_pairs(tmp_path: Path) -> None:
    from spt.rank_pairs import read

    path = tmp_path / "sweep.yaml"
    path.write_text(rank_html.SWEEP)
    assert len(read(path)) == 3


def test_two_pairs_show_numbers_and_how_little_they_say(board: Board) -> None:
    twins.lay_out(2, ("capitals",))
    parts = shown(board)
    assert "say next to nothing" in parts["needed"]["value"] and "orders" in parts
    twins.lay_out(3, ("capitals",))
    assert "needed" not in shown(board)


def test_seven_pairs(board: Board) -> None:
    twins.lay_out(7)
    parts = shown(board)
    assert "stand 0 of 21 swaps" in parts["head"]["value"] and "Chance: 10.5." in parts["head"]["value"]
    assert "mean of 2 benchmarks" in parts["head"]["value"]
    assert [value for _, value in parts["benchmark"]["choices"]] == [OVERALL, "capitals", "capitals-mc"]
    assert parts["orders"]["value"].count("<svg") == 3
    for name in ("distance", "gap", "scatter", "curves"):
        figure = parts[name]["value"]
        json.dumps(figure, allow_nan=False)
        assert figure["data"] and figure["label"]
    assert "7 models" not in parts["curves-head"]["value"] and "14 models" in parts["curves-head"]["value"]
    one = shown(board, "capitals")
    assert "On capitals, base models scored with the soft prompt" in one["head"]["value"]
    assert "64 test items" in one["head"]["value"]
    assert shown(board, "gone")["benchmark"]["value"] == OVERALL


def test_ties_share_one_place_in_the_picture(board: Board) -> None:
    forms = {"zero_shot": 0.0, "few_shot": 0.6, "soft_prompt": 0.96}
    for number in (1, 2, 3):
        twins.finish(twins.base(number), 0.2 * number, forms)
        twins.finish(twins.post(number), 0.2 * number, dict.fromkeys(METHODS, 0.95))
    picture = shown(board)["orders"]["value"]
    zero = picture[picture.index("Zero-shot<em>") :].split("</figure>")[0]
    assert "1½ of 3" in zero and zero.count('class="tie"') == 1 and "mostly ties" in zero
    assert len(set(re.findall(r'x1="166" y1="([\d.]+)"', zero))) == 1  # all three lines begin in the middle of the box
    assert len(set(re.findall(r'y2="([\d.]+)"', zero))) == 3


def test_hostile_names_stay_text(board: Board) -> None:
    for number in (1, 2, 3):
        for suffix in ("", "-Instruct"):
            twins.finish(f"lab/{HOSTILE}{number}{suffix}", 0.2 * number, twins.FORM, benchmark="capitals")
    parts = shown(board)
    html = "".join(str(part.get("value", "")) for name, part in parts.items() if name in ("head", "orders", "notes"))
    assert "<script" not in html and "<img" not in html and "&lt;" in html


def test_pages_share_one_reading(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    twins.lay_out(3, ("capitals",))
    read: list[Path] = []
    original = rank_sources._entries

    def counted(path: Path, changed: float) -> object:
        read.append(path)
        return original(path, changed)

    monkeypatch.setattr(rank_sources, "_entries", counted)
    for _ in range(10):
        shown(board)
    assert len(read) == 6
    seen = board.look("exact_match", "zero_shot")
    assert board.look("exact_match", "zero_shot") is seen
    twins.finish(twins.base(4), 0.9, twins.FORM)
    twins.finish(twins.post(4), 0.9, twins.FORM)
    assert "6 swaps" in shown(board)["head"]["value"] and len(read) == 8


def test_pairs_file_counts_at_once_and_a_bad_one_is_said(board: Board, spt_home: Path) -> None:
    for number in (1, 2, 3):
        twins.finish(f"a/{number}x", 0.2 * number, twins.FORM)
        twins.finish(f"b/{number}y", 0.25 * number, twins.FORM)
    assert "orders" not in shown(board)
    (spt_home / "pairs.yaml").write_text("a/1x: b/1y\na/2x: b/2y\na/3x: b/3y\n")
    assert "orders" in shown(board)
    (spt_home / "pairs.yaml").write_text("a/1x: a/1x\n")
    parts = shown(board)
    assert set(parts) == {"head"} and "pairs.yaml" in parts["head"]["value"]


def test_score_and_reference_are_what_is_chosen(board: Board) -> None:
    twins.lay_out(3, ("capitals",))
    assert "knowledge" in shown(board, score="knowledge")["head"]["value"]
    assert "with the same method" in shown(board, against="same")["orders"]["value"]


def test_swaps_are_written_with_halves() -> None:
    assert [rank_html.swaps(value) for value in (0, 0.5, 3, 3.5, 2.3333)] == ["0", "½", "3", "3½", "2.3"]


def test_curves_are_means_over_models_not_runs(board: Board) -> None:
    twins.finish("lab/A", 1.0, twins.FORM, seed=0)
    twins.finish("lab/A", 1.0, twins.FORM, seed=1)
    twins.finish("lab/B", 0.0, twins.FORM)
    twins.finish("lab/C", 0.5, twins.FORM, benchmark="capitals-mc")
    reader = rank_sources.Reader()
    runs: dict[str, Entry] = {entry.run: entry for entry in reader.read().entries}
    found = courses((entry, reader.probes(entry)) for entry in runs.values())
    assert list(found) == [True, False]
    assert found[False].knowledge.mean[0] == pytest.approx(0.5)  # of A and B, though A has two runs
    assert (found[False].models, found[False].runs, found[True].models) == (2, 3, 1)
    assert found[False].steps == tuple(range(0, 81, 10)) and not found[False].format.low


def test_courses_of_many_runs_are_those_changed_last(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    twins.lay_out(3, ("capitals",))
    monkeypatch.setattr(rankings_tab, "MOST_CURVES", 2)
    assert "2 runs" in shown(board)["curves-head"]["value"]
