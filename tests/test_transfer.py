"""A stored prompt used again: on its own model as in its run, elsewhere only by force and labelled."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from spt import cli, transfer
from spt.cli_eval import show
from spt.experiment import ModelCache
from spt.runner import eval_prompt, execute
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from spt.transfer import Done, PromptScores, settings_of
from tests.runs import home_at, small_spec
from tests.tiny import make

Tiny = Callable[[str], Path]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tiny: Tiny) -> Path:
    """A home with a finished run."""
    home = tmp_path_factory.mktemp("home")
    with home_at(home):
        execute(Store().create(small_spec(tiny("llama"), probe_every=0, seed=2)), ModelCache())
    return home


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setenv("SPT_HOME", str(home))
    return Store().runs()[0]


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Another checkpoint of the same width, and a wider model."""
    return {
        "same width": str(make("llama", tmp_path_factory.mktemp("other"), seed=1)),
        "wider": str(make("llama", tmp_path_factory.mktemp("wider"), hidden_size=64)),
    }


def spt(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["spt", *words])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def printed(found: PromptScores) -> str:
    console = Console(file=io.StringIO(), width=300, record=True)
    show(console, found)
    return console.export_text()


def test_on_its_own_model_it_gives_what_the_run_gave(run: RunFolder) -> None:
    files = sorted(str(path) for path in run.path.rglob("*"))
    heard: list[Done] = []
    found = eval_prompt(run, settings_of(run.spec), False, heard.append)
    result = run.result()
    assert result is not None and result.analysis is not None
    assert found.transfer is None and found.prompt == run.id
    assert found.scores == {method: result.methods[method] for method in ("zero_shot", "soft_prompt")}
    assert all(each in result.analysis.comparisons for each in found.comparisons) and len(found.comparisons) == 3
    assert heard == [Done(m, n, 18) for m in ("zero_shot", "soft_prompt") for n in (16, 18)]
    assert sorted(str(path) for path in run.path.rglob("*")) == files, "nothing of the run is changed"
    assert "transfer" not in printed(found).lower()


def test_more_items_and_another_benchmark_of_its_form(run: RunFolder, tmp_path: Path) -> None:
    more = eval_prompt(run, settings_of(run.spec, items=20), False)
    assert more.scores["soft_prompt"].format.n == 20
    own = tmp_path / "mine.jsonl"
    rows = [{"question": f"What is {i}?", "answer": f"a{i}", "split": "test" if i % 2 else "train"} for i in range(12)]
    own.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(UserError, match="choose a benchmark of its form"):
        eval_prompt(run, settings_of(run.spec, benchmark="capitals-mc"), False)
    with pytest.raises(UserError, match="choose a benchmark of its form"):
        eval_prompt(run, settings_of(run.spec, benchmark=str(own)), False)
    settings = settings_of(run.spec, benchmark="arithmetic", items=3)
    assert settings.holdout_topic is None and settings.model == run.spec.model


def test_elsewhere_it_is_refused_forced_and_labelled(
    run: RunFolder, others: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = settings_of(run.spec, model=others["same width"], items=4)
    with monkeypatch.context() as patch:
        patch.setattr(transfer.models, "load", lambda *a: pytest.fail("refused before anything is loaded"))
        with pytest.raises(UserError, match=r"not for .* or score it all the same with `spt eval --force-transfer`"):
            eval_prompt(run, other, False)
    found = eval_prompt(run, other, True)
    assert found.transfer is not None and found.model == others["same width"]
    assert found.transfer.tuned_for.startswith(run.spec.model) and "local-" in found.transfer.tuned_for
    assert found.transfer.used_on.startswith(others["same width"])
    said = printed(found)
    assert "TRANSFER" in said and "Transferred" in said and "was tuned for" in said
    with pytest.raises(UserError, match=r"\(width 32\) and cannot be used with .* \(width 64\)"):
        eval_prompt(run, settings_of(run.spec, model=others["wider"], items=4), True)


def test_a_checkpoint_that_was_replaced_is_another_one(run: RunFolder, others: dict[str, str], tmp_path: Path) -> None:
    """Same name, other weights."""
    place = tmp_path / "model"
    shutil.copytree(run.spec.model, place)
    folder = Store().create(run.spec.model_copy(update={"model": str(place), "steps": 1, "items": 2}))
    execute(folder, ModelCache())
    shutil.rmtree(place)
    shutil.copytree(others["same width"], place)
    with pytest.raises(UserError, match=r"at revision local-.* `spt eval --force-transfer"):
        eval_prompt(folder, settings_of(folder.spec), False)
    found = eval_prompt(folder, settings_of(folder.spec), True)
    assert found.transfer is not None and found.transfer.tuned_for != found.transfer.used_on
    folder.delete()


def test_the_chat_template_is_that_of_the_tuning(run: RunFolder, tmp_path: Path) -> None:
    chatty = make("llama", tmp_path, chat_template=True)
    found = eval_prompt(run, settings_of(run.spec, model=str(chatty), items=2), True)
    assert not found.chat_template, "the prompt was tuned without, whatever this model would take by itself"


def test_the_command_prints_writes_and_refuses(
    run: RunFolder, others: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = tmp_path / "scores.json"
    words = ("eval", "--prompt", run.id, "--items", "4")
    assert spt(monkeypatch, *words, "--output", str(file)) == 0
    said = " ".join(capsys.readouterr().out.split())  # wherever its lines end
    assert "4 test items" in said and "Soft prompt" in said and "95 % interval" in said
    found = PromptScores.model_validate_json(file.read_text())
    assert found.transfer is None and json.loads(file.read_text())["transfer"] is None

    there = (*words, "--model", others["same width"])
    assert spt(monkeypatch, *there) == 2
    assert "--force-transfer" in capsys.readouterr().err
    assert spt(monkeypatch, *there, "--force-transfer", "--json") == 0
    said_as_json = json.loads(capsys.readouterr().out)
    assert set(said_as_json["transfer"]) == {"tuned_for", "used_on"}

    for wrong, sentence in (
        (("eval", "--prompt", "nowhere-1"), "There is no run 'nowhere-1'"),
        ((*words, "--items", "0"), "--items 0 is not possible"),
        ((*words, "--output", str(tmp_path / "no" / "x.json")), "give a file in a folder that is there"),
        ((*words, "--model", "no such model"), "There is no model"),
    ):
        assert spt(monkeypatch, *wrong) == 2
        assert sentence in capsys.readouterr().err


def test_ctrl_c_writes_nothing(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(self: object, method: str, batch: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transfer.Evaluator, "answer", press)
    file = tmp_path / "scores.json"
    assert spt(monkeypatch, "eval", "--prompt", run.id, "--output", str(file)) == 130
    assert "Stopped; nothing was written." in capsys.readouterr().out
    assert not file.exists()
    monkeypatch.undo()


def test_its_json_is_no_result(run: RunFolder, tmp_path: Path) -> None:
    """What reads results asks for their schema, so scores of a prompt are never ranked by accident."""
    from spt.run_files import check_schema

    found = eval_prompt(run, settings_of(run.spec, items=2), False)
    content = json.loads(found.model_dump_json())
    assert content["kind"] == "prompt-scores" and "methods" not in content and "spec" not in content
    with pytest.raises(UserError):
        check_schema("scores", content)


def test_a_run_without_a_prompt_is_told() -> None:
    folder = Store().create(RunSpec())
    with pytest.raises(UserError, match="has no soft prompt yet"):
        eval_prompt(folder, settings_of(folder.spec), False)
