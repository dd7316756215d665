"""Sweeps: what a file means, what is wrong with one, and that every run is done once, whatever happens."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from spt import cli
from spt.events import StepLoss
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from spt.sweep import Pair, by_model, check, in_turn, plan, read
from tests.finished import finished_run
from tests.runs import outcome, small_spec

Tiny = Callable[[str], Path]


def write(path: Path, **grid: object) -> Path:
    path.write_text(yaml.safe_dump(grid))
    return path


def test_a_grid_is_its_runs_and_its_pairs(tmp_path: Path) -> None:
    sweep = read(
        write(
            tmp_path / "s.yaml",
            models=[{"pair": {"base": "a/base", "post_trained": "a/chat"}}, {"model": "b/c", "precision": "4bit"}],
            benchmarks=["capitals", "ARC-Easy"],
            seeds=[0, 2],
            settings={"items": 8, "control": ["shuffled"]},
        )
    )
    assert len(sweep.specs) == 12 and sweep.pairs == (Pair(base="a/base", post_trained="a/chat"),)
    assert [spec.model for spec in sweep.specs[::4]] == ["a/base", "a/chat", "b/c"]
    assert {spec.precision for spec in sweep.specs if spec.model == "b/c"} == {"4bit"}
    assert sweep.specs[2] == RunSpec(model="a/base", benchmark="arc_easy", items=8, control=("shuffled",))
    assert [len(specs) for specs in by_model(sweep.specs).values()] == [4, 4, 4]


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"models": ["bundled"], "benchmarks": ["capitals"], "gpus": 2}, "no field 'gpus'"),
        ({"models": ["bundled"]}, "benchmarks is missing"),
        ({"models": [], "benchmarks": ["capitals"]}, "models is empty"),
        ({"models": ["bundled", "bundled"], "benchmarks": ["capitals"]}, "bundled is listed twice"),
        ({"models": ["bundled"], "benchmarks": ["capitals", "capitals"]}, "benchmarks has 'capitals' twice"),
        ({"models": ["bundled"], "benchmarks": ["capitals"], "seeds": [0, 0]}, "seeds has 0 twice"),
        ({"models": [{"pair": {"base": "a/b"}}], "benchmarks": ["capitals"]}, "both of them"),
        ({"models": [{"precision": "4bit"}], "benchmarks": ["capitals"]}, "`model` or `pair`"),
        ({"models": ["bundled"], "benchmarks": ["capital"]}, "Did you mean 'capitals'?"),
        ({"models": ["bundled"], "benchmarks": ["capitals"], "settings": {"step": 3}}, "step"),
        ({"models": ["bundled"], "benchmarks": ["capitals"], "settings": {"seed": 3}}, "listed under `seeds`"),
        ({"models": ["bundled"], "benchmarks": ["capitals"], "seeds": ["x"]}, "seeds[0] = 'x'"),
        ([1], "a mapping"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(grid: object, said: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(grid))
    with pytest.raises(UserError) as error:
        read(path)
    assert said in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


def test_no_yaml_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("models: [a\nbenchmarks: b")
    with pytest.raises(UserError, match=r"line 2: this is no YAML"):
        read(path)
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "none.yaml")


def test_what_cannot_run_is_said_before_anything_starts(tiny: Tiny, tmp_path: Path) -> None:
    model = str(tiny("llama"))
    with pytest.raises(UserError, match=r"none\.jsonl"):
        check(read(write(tmp_path / "a.yaml", models=[model], benchmarks=[str(tmp_path / "none.jsonl")])), Store())
    root = tmp_path / "store"
    root.write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        check(read(write(tmp_path / "b.yaml", models=[model], benchmarks=["capitals"])), Store(root))


def small(tmp_path: Path, models: list[str], **more: object) -> Path:
    settings = small_spec(Path(models[0])).model_dump(exclude_defaults=True, exclude={"model", "benchmark"})
    return write(tmp_path / "sweep.yaml", models=models, benchmarks=["capitals"], settings=settings, **more)


def spt(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["spt", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_a_run_that_fails_is_told_and_the_rest_is_done_once(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny("llama"), broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    path = small(tmp_path, [str(broken), str(tiny("qwen3"))], seeds=[0, 1])
    assert spt(monkeypatch, "sweep", str(path)) == 1
    said = capsys.readouterr()
    assert "2 runs of 4 failed" in said.err.replace("\n", " ")
    specs = read(path).specs
    store = Store()
    assert [store.get(spec.run_id).status() for spec in specs] == ["failed", "failed", "finished", "finished"]
    before = [store.get(spec.run_id).changed() for spec in specs[2:]]
    shutil.rmtree(broken)
    shutil.copytree(tiny("llama"), broken)
    assert spt(monkeypatch, "sweep", str(path), "--dry-run") == 0
    assert "2 finished before, 2 to do" in capsys.readouterr().out
    assert spt(monkeypatch, "sweep", str(path)) == 0
    assert "All 4 runs are finished" in capsys.readouterr().out
    assert [store.get(spec.run_id).changed() for spec in specs[2:]] == before, "what was finished is not touched"


def test_a_sweep_that_is_broken_off_goes_on_with_the_same_results(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = read(small(tmp_path, [str(tiny("llama"))], seeds=[0, 1]))

    def break_off(folder: RunFolder, message: object) -> None:
        if folder.id == sweep.specs[1].run_id and isinstance(message, StepLoss) and message.step == 3:
            raise KeyboardInterrupt

    first = [done.state for done in in_turn(by_model(sweep.specs).values(), Store(), break_off)]
    assert first == ["finished", "stopped"]
    todo = [each.spec for each in plan(sweep, Store()) if not each.done]
    assert todo == [sweep.specs[1]]
    assert [done.state for done in in_turn(by_model(todo).values(), Store())] == ["finished"]
    whole = Store(tmp_path / "unbroken")
    list(in_turn(by_model(sweep.specs).values(), whole))
    for spec in sweep.specs:
        assert outcome(Store().get(spec.run_id)) == outcome(whole.get(spec.run_id))


def test_methods_is_short_for_a_setting(tmp_path: Path) -> None:
    given = {"models": ["a/b"], "benchmarks": ["capitals"]}
    short = read(write(tmp_path / "a.yaml", **given, methods=["lora"]))
    assert short.specs == read(write(tmp_path / "b.yaml", **given, settings={"method": ["lora"]})).specs
    assert short.specs[0].methods[-1] == "lora"
    with pytest.raises(UserError, match="not both"):
        read(write(tmp_path / "c.yaml", **given, methods=["lora"], settings={"method": ["lora"]}))
    with pytest.raises(UserError, match="method 'prefix' is not possible"):
        read(write(tmp_path / "d.yaml", **given, methods=["prefix"]))


def test_time_and_memory_come_from_earlier_runs_of_the_model(tmp_path: Path) -> None:
    finished_run(RunSpec(items=8, steps=4), lambda method, i, item: "#### x")
    sweep = read(write(tmp_path / "s.yaml", models=["bundled", "a/b"], benchmarks=["capitals"], settings={"items": 16}))
    (known, unknown) = plan(sweep, Store())
    assert known.seconds == 1.0 and known.memory_mb == 10.0, "loading does not grow with items"
    assert (unknown.seconds, unknown.memory_mb) == (None, None)


def test_a_thousand_finished_runs_are_skipped_within_seconds(tmp_path: Path) -> None:
    sweep = read(
        write(tmp_path / "s.yaml", models=["bundled"], benchmarks=["capitals", "trivia"], seeds=list(range(500)))
    )
    store = Store()
    for spec in sweep.specs:
        (store.root / spec.run_id).mkdir(parents=True)
        (store.root / spec.run_id / "result.json").touch()
    start = time.perf_counter()
    planned = plan(read(tmp_path / "s.yaml"), store)
    assert all(each.done for each in planned) and len(planned) == 1000
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("name", ["paper-grid", "small-open"])
def test_recipes_are_sweeps_of_whole_pairs(name: str) -> None:
    sweep = read(Path(__file__).parents[1] / "recipes" / f"{name}.yaml")
    paired = [model for pair in sweep.pairs for model in (pair.base, pair.post_trained)]
    assert list(dict.fromkeys(spec.model for spec in sweep.specs)) == paired
    if name == "paper-grid":
        assert len(sweep.pairs) == 7 and len({spec.benchmark for spec in sweep.specs}) == 7
