"""The spec: one hash for the same settings, one sentence for bad ones, and a command that says the same again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spt.cli import app
from spt.spec import BadSetting, RunSpec, UserError


def test_the_run_id_is_stable_and_follows_every_setting() -> None:
    assert RunSpec().run_id.startswith("capitals-bundled-")
    assert RunSpec(seed=0).run_id == RunSpec().run_id
    changes = {
        "model": "other", "revision": "r", "benchmark": "trivia", "precision": "fp32", "chat_template": "off",
        "shots": 2, "virtual_tokens": 3, "steps": 7, "batch_size": 2, "learning_rate": 0.5, "seed": 9, "items": 5,
        "probe_every": 1, "probe_items": 2, "seeds": 3, "control": ("shuffled",), "method": ("lora",),
        "holdout_topic": "history",
        "data_dir": "data", "answer_format": "phrase", "template": "<{answer}>", "pattern": "<(.*)>",
    }  # fmt: skip
    assert set(changes) == set(RunSpec.model_fields)
    ids = {RunSpec(**{name: value}).run_id for name, value in changes.items()}
    assert len(ids | {RunSpec().run_id}) == len(changes) + 1
    assert RunSpec(probe_every=0).run_id == "capitals-bundled-843badca722e", (
        "runs made before a setting existed keep their id"
    )


def test_the_arms_are_the_prompts_tuned_together() -> None:
    assert [arm.name for arm in RunSpec().arms] == ["soft_prompt"]
    spec = RunSpec(seed=4, seeds=3, control=("valid-format", "shuffled", "shuffled"))
    assert [tuple(arm) for arm in spec.arms] == [
        ("soft_prompt", 4, None),
        ("seed-5", 5, None),
        ("seed-6", 6, None),
        ("shuffled", 4, "shuffled"),
        ("valid-format", 4, "valid-format"),
    ]


def test_further_methods_come_last_and_are_repeated_in_the_command() -> None:
    spec = RunSpec(method=("lora", "lora"), control=("shuffled",))
    assert spec.methods == ("zero_shot", "few_shot", "soft_prompt", "shuffled", "tuned_items", "lora")
    assert RunSpec(method=("lora",)).methods[-2:] == ("soft_prompt", "lora")
    assert spec.command().endswith("--control shuffled --method lora")
    assert [arm.name for arm in RunSpec(method=("lora",)).arms] == ["soft_prompt"], "LoRA is no soft prompt"
    with pytest.raises(UserError, match="--method 'full' is not possible"):
        RunSpec.parse(method=["full"])


@pytest.mark.parametrize("model", ["org/Näme 7B!", "/a/folder/", "../..", "é" * 300])
def test_the_run_id_is_a_safe_folder_name(model: str) -> None:
    run_id = RunSpec(model=model).run_id
    assert all(c.isascii() and (c.isalnum() or c == "-") for c in run_id) and len(run_id) < 60


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 0}, "--steps 0"),
        ({"virtual_tokens": 10**6}, "--virtual-tokens 1000000"),
        ({"learning_rate": -1}, "--learning-rate -1"),
        ({"learning_rate": float("nan")}, "--learning-rate nan"),
        ({"precision": "fp64"}, "--precision 'fp64'"),
        ({"model": ""}, "--model ''"),
        ({"flavour": 1}, "flavour"),
    ],
)
def test_a_bad_setting_is_named_in_one_sentence(settings: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as error:
        RunSpec.parse(**settings)
    message = str(error.value)
    assert words in message and message.endswith(".") and "\n" not in message


def test_a_bad_setting_is_called_as_it_was_typed_and_otherwise_where_a_view_has_labels() -> None:
    for settings, typed in (
        ({"learning_rate": 0}, "--learning-rate 0 is not possible"),
        ({"control": ["shuffled", "x"]}, "--control 'x' is not possible"),
    ):
        with pytest.raises(BadSetting) as error:
            RunSpec.parse(**settings)
        assert str(error.value).startswith(typed)
    assert str(error.value.named("Controls")).startswith("Controls = 'x' is not possible")


def test_the_command_says_the_same_settings_again(tmp_path: Path) -> None:
    """What the page shows for copying is parsed by the real command line into the same run."""
    model = tmp_path / "a folder; rm -rf"  # that looks like a model until it is loaded
    model.mkdir()
    for name in ("config.json", "model.safetensors"):
        (model / name).write_text("")
    spec = RunSpec(
        model=str(model),
        benchmark="trivia",
        learning_rate=0.25,
        seed=3,
        chat_template="off",
        control=("shuffled", "valid-format"),
    )
    words = shlex.split(spec.command())
    assert words[:4] == ["python", "-m", "spt", "run"]
    result = CliRunner().invoke(app, words[3:])
    assert spec.run_id in result.output + result.stderr


def test_a_local_model_is_the_same_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "tiny").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    here, by_path = RunSpec(model="./tiny"), RunSpec(model=str(tmp_path / "a" / "tiny"))
    monkeypatch.chdir(tmp_path / "b")
    assert here == by_path != RunSpec(model="tiny")
    assert RunSpec(model="~nobodyhere/x").model == "~nobodyhere/x", "no such home: a name like any other"
    assert len(RunSpec(model="a" * 300).model) == 300
