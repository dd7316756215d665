"""A sweep on a real cluster of three nodes on this machine, one of which is killed while it works."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spt.events import RunFinished, RunStarted
from spt.spec import UserError
from spt.store import Store
from spt.sweep import Sweep, by_model, in_turn, read
from spt.sweep_ray import Remote, on_ray
from tests.runs import outcome
from tests.test_sweep import small

ray = pytest.importorskip("ray")

Tiny = Callable[[str], Path]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head without processors, so that no task runs there, and three nodes of one processor each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_DISABLE_IMPORT_WARNING", "1")
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [made.add_node(num_cpus=1) for _ in range(3)]
    made.wait_for_nodes()
    made.spare = nodes  # type: ignore[attr-defined]
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def grid(tiny: Tiny, tmp_path: Path, **more: Any) -> Sweep:
    models = [str(tiny(name)) for name in ("llama", "qwen3", "gpt2")]
    return read(small(tmp_path, models, seeds=[0, 1], **more))


def test_every_run_is_done_once_though_a_node_is_killed(tiny: Tiny, tmp_path: Path, cluster: Any) -> None:
    sweep, store = grid(tiny, tmp_path), Store(tmp_path / "shared")
    groups = list(by_model(sweep.specs).values())
    victim = cluster.spare[0]
    killed = False
    seen = []
    for ended in on_ray(groups, store, None, cluster.address):
        seen.append(ended)
        if not killed:  # the other runs of this model, and those of other nodes, are at work now
            cluster.remove_node(victim, allow_graceful=False)
            killed = True
    assert sorted(e.spec.run_id for e in seen) == sorted(spec.run_id for spec in sweep.specs)
    assert {e.state for e in seen} <= {"finished", "done before"}
    serial = Store(tmp_path / "serial")
    list(in_turn(groups, serial))
    for spec in sweep.specs:
        folder = store.get(spec.run_id)
        assert outcome(folder) == outcome(serial.get(spec.run_id)), "the same bits as in turn"
        assert sum(isinstance(event, RunFinished) for event in folder.events()) == 1, "finished once"


def test_runs_come_back_through_an_object_store(tiny: Tiny, tmp_path: Path, cluster: Any) -> None:
    sweep, store, where = grid(tiny, tmp_path), Store(tmp_path / "here"), f"file://{tmp_path}/bucket"
    groups = list(by_model(sweep.specs).values())[:1]
    assert [e.state for e in on_ray(groups, store, where, cluster.address)] == ["finished"] * 2
    assert all(store.get(spec.run_id).result() for spec in groups[0])
    elsewhere = Store(tmp_path / "elsewhere")  # another machine that asks for the same: nothing is run again
    assert [e.state for e in on_ray(groups, elsewhere, where, cluster.address)] == ["done before"] * 2
    starts = [event for event in elsewhere.get(groups[0][0].run_id).events() if isinstance(event, RunStarted)]
    assert len(starts) == 1


def test_what_is_not_possible_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no Ray cluster at 127\.0\.0\.1:1"):
        list(on_ray([], Store(tmp_path), None, "127.0.0.1:1"))
    with pytest.raises(UserError, match="--store nosuch://bucket"):
        Remote("nosuch://bucket")


