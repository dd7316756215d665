"""The tour for a stand: which run comes next and what is sent of it."""

from __future__ import annotations

import json
from pathlib import Path

from spt.spec import RunSpec
from spt.store import Store
from spt.ui import theme, tour
from spt.ui.follow import Follower
from tests.ui import samples


def test_the_tour_goes_round_the_finished_runs_and_passes_over_the_others(spt_home: Path) -> None:
    store = Store()
    follower = Follower(store)
    assert "knowledge, or format" in tour.scene(follower)["html"], "without a run: the idea"
    one, two = samples.finished(store), samples.finished(store, closed=True)
    broken = store.create(RunSpec(seed=7))
    (broken.path / "result.json").write_text("{}")
    store.create(RunSpec(seed=8))
    follower.list.expire()
    first = tour.scene(follower)["run"]
    second = tour.scene(follower, first)["run"]
    assert {first, second} == {one.id, two.id}
    assert tour.scene(follower, second)["run"] == first
    assert tour.scene(follower, "nowhere")["run"] == first
    two.delete()
    assert tour.scene(follower, one.id)["run"] == one.id, "one alone plays again"


def test_a_scene_has_all_it_plays_and_no_markup_of_others(spt_home: Path) -> None:
    store = Store()
    folder = samples.finished(store)
    scene = tour.scene(Follower(store), "")
    assert scene["run"] == folder.id and scene["of"] == 20 and scene["figure"]["data"]
    (question,) = scene["answer"]["questions"]
    assert samples.HOSTILE in question["question"], "set as text in the browser"
    assert "<script" not in scene["html"] + scene["scores"] + scene["legend"]
    assert len(json.dumps(scene)) < 30_000


def test_a_run_without_probes_shows_its_scores(spt_home: Path) -> None:
    from tests.finished import finished_run

    finished_run(RunSpec(items=4, probe_every=0), lambda method, i, item: item.target)
    scene = tour.scene(Follower(Store()))
    assert "figure" not in scene and "<table>" in scene["scores"]


def test_the_stand_is_one_word_in_the_head() -> None:
    assert "spt-kiosk" in theme.head(kiosk=True).split("<script>")[0]
    assert "spt-kiosk" not in theme.head().split("<script>")[0]
