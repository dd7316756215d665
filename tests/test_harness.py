"""Tasks of lm-evaluation-harness: a YAML over a local JSON file, of both kinds, through lm-eval itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from spt import models
from spt.benchmarks import for_spec, load
from spt.preview import preview
from spt.prompting import Prompter
from spt.spec import RunSpec, UserError

pytest.importorskip("lm_eval")

MULTIPLE_CHOICE = {
    "output_type": "multiple_choice",
    "description": "Sums for {{'you'}}.\n\n",
    "doc_to_text": "Q: {{sum}} = ?\nA:",
    "doc_to_choice": ["{{right}}", "{{wrong}}"],
    "doc_to_target": "key",
}
OPEN = {
    "output_type": "generate_until",
    "doc_to_text": "Q: {{sum}} = ?\nA:",
    "doc_to_target": "{{sum}} is {{right}}.\n#### {{right}}",
    "generation_kwargs": {"until": ["Q:", "\n\n"], "max_gen_toks": 77},
    "filter_list": [{"name": "strict", "filter": [{"function": "regex", "regex_pattern": "#### ([0-9]+)"}]}],
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`datasets` keeps what it has read; here in the test's folder."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def rows(start: int, count: int) -> list[dict[str, Any]]:
    return [
        {"sum": f"{i} + 1", "right": str(i + 1), "wrong": str(i), "choices": [str(i + 1), str(i)], "key": 0}
        for i in range(start, start + count)
    ]


def task(folder: Path, settings: dict[str, Any], **splits: list[dict[str, Any]]) -> RunSpec:
    """A task's YAML and its rows, by split."""
    files = {}
    for split, docs in splits.items():
        files[split] = str(folder / f"{split}.jsonl")
        Path(files[split]).write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    roles = {"train": "training_split", "validation": "validation_split", "test": "test_split"}
    config = {
        "task": "sums",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": files},
        **{roles[split]: split for split in splits},
        **settings,
    }
    path = folder / "sums.yaml"
    path.write_text(yaml.safe_dump(config))
    return RunSpec(benchmark=f"lm_eval:{path}")


def choices(folder: Path, **splits: list[dict[str, Any]]) -> RunSpec:
    return task(folder, {**MULTIPLE_CHOICE, "doc_to_choice": "choices"}, **splits)


def test_multiple_choice(tmp_path: Path) -> None:
    benchmark, split = load(choices(tmp_path, train=rows(0, 8), test=rows(100, 5)))
    assert benchmark.closed and benchmark.name == "lm_eval:sums"
    assert "tuned on train, tested on test" in benchmark.source
    assert (len(split.train), len(split.test)) == (8, 5)
    example = split.train[0]
    assert example.question == "Q: 0 + 1 = ?\nA:"
    assert (example.options, example.target) == (("1", "0"), "1")
    assert benchmark.format.in_format("0", example) and not benchmark.format.in_format("A. 0", example)
    assert benchmark.instruction == "Sums for you.\n\n"


def test_the_question_is_shown_as_the_task_writes_it(tmp_path: Path, bundled: models.LoadedModel) -> None:
    spec = choices(tmp_path, train=rows(0, 8), test=rows(100, 5))
    assert preview(spec).rows[0].context == "Sums for you.\n\nQ: 0 + 1 = ?\nA: "
    benchmark, split = load(spec)
    prompter = Prompter(bundled.tokenizer, benchmark, False, tuple(split.train[:2]), bundled.eos_ids, {})
    shown = bundled.tokenizer.decode(prompter.context(split.test[0], "few_shot"))
    assert shown == "Sums for you.\n\nQ: 0 + 1 = ?\nA: 1\n\nQ: 1 + 1 = ?\nA: 2\n\nQ: 100 + 1 = ?\nA:"
    chat = Prompter(bundled.tokenizer, benchmark, True, (), bundled.eos_ids, {})
    assert "<|im_start|>user\nSums for you.\n\nQ: 100 + 1 = ?\nA:<|im_end|>" in bundled.tokenizer.decode(
        chat.context(split.test[0], "zero_shot")
    )


def test_open_with_a_filter(tmp_path: Path) -> None:
    benchmark, split = load(task(tmp_path, OPEN, train=rows(0, 8), validation=rows(50, 6)))
    form, example = benchmark.format, split.train[0]
    assert not benchmark.closed and form.max_new_tokens == 77
    assert "tested on validation" in benchmark.source
    assert (example.target, example.answer) == ("0 + 1 is 1.\n#### 1", "1")
    assert form.trim(" It is 1.\n#### 1\n\nAnd more") == ("It is 1.\n#### 1", True)
    assert form.trim("\n\n1 Q") == ("1 Q", False), "white space before the answer does not end it"
    assert form.exact_match("So #### 1 it is", example)
    assert form.in_format("#### 2", example) and not form.exact_match("#### 2", example)
    assert not form.in_format("1", example) and form.knows("it is 1", example)


def test_open_without_a_filter_is_a_short_phrase(tmp_path: Path) -> None:
    settings = {**OPEN, "filter_list": None, "doc_to_target": "right"}
    benchmark, split = load(task(tmp_path, settings, train=rows(0, 8), test=rows(50, 6)))
    assert benchmark.format.name == "short phrase" and split.train[0].target == "1"


def test_several_accepted_answers(tmp_path: Path) -> None:
    docs = [{**doc, "right": ["one", "1"]} for doc in rows(0, 14)]
    settings = {**OPEN, "filter_list": None, "doc_to_target": "right"}
    example = load(task(tmp_path, settings, train=docs[:8], test=docs[8:]))[1].train[0]
    assert (example.target, example.aliases) == ("one", ("1",))


def test_a_filter_that_the_targets_do_not_pass_is_passed_over(tmp_path: Path) -> None:
    benchmark, _ = load(task(tmp_path, {**OPEN, "doc_to_target": "right"}, train=rows(0, 8), test=rows(50, 6)))
    assert benchmark.format.name == "short phrase"
    long = {**OPEN, "filter_list": None, "doc_to_target": "It is {{right}} because it is what it is."}
    with pytest.raises(UserError, match="spt has no form to tune for"):
        load(task(tmp_path, long, train=rows(0, 8), test=rows(50, 6)))


@pytest.mark.parametrize("split", ["validation", "test"])
def test_one_split_is_parted(tmp_path: Path, split: str) -> None:
    benchmark, parts = load(choices(tmp_path, **{split: rows(0, 20)}))
    assert (len(parts.train), len(parts.test)) == (10, 10)
    assert not {e.question for e in parts.train} & {e.question for e in parts.test}
    assert f"its one split, {split}, parted in halves" in benchmark.source


def test_validation_tunes_where_there_is_no_train(tmp_path: Path) -> None:
    benchmark, split = load(choices(tmp_path, validation=rows(0, 6), test=rows(3, 6)))
    assert "tuned on validation, tested on test" in benchmark.source
    assert (len(split.train), len(split.test)) == (3, 6)
    assert split.dropped == {"train: question also in test": 3}


def test_rows_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    docs = [*rows(0, 6), {**rows(7, 1)[0], "key": 5}, {**rows(8, 1)[0], "choices": ["9", "9"]}]
    split = load(choices(tmp_path, train=docs, test=rows(50, 6)))[1]
    assert split.dropped == {"train: no label": 1, "train: the right option stands twice": 1}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"output_type": "loglikelihood", "doc_to_choice": None}, "of type loglikelihood: spt takes multiple_choice"),
        ({"doc_to_text": "{{sum.nothing.at_all}}"}, "lm-eval cannot load .*Undefined"),
        ({"dataset_path": "/nowhere"}, "lm-eval cannot load"),
        ({"doc_to_text": "key"}, "multiple inputs"),
    ],
)
def test_tasks_that_spt_cannot_take(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    settings = {**MULTIPLE_CHOICE, "doc_to_choice": "choices", **settings}
    with pytest.raises(UserError, match=message) as raised:
        load(task(tmp_path, settings, train=rows(0, 8), test=rows(9, 8)))
    assert "\n" not in str(raised.value)


def test_no_such_file_and_no_lm_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec(benchmark=f"lm_eval:{tmp_path / 'none.yaml'}")
    with pytest.raises(UserError, match="There is no task file"):
        for_spec(spec)
    monkeypatch.setitem(sys.modules, "lm_eval", None)  # as where it is not installed
    with pytest.raises(UserError, match=r"needs lm-evaluation-harness: pip install lm-eval==0\.4\.13$"):
        for_spec(spec)


def test_a_name_is_looked_up_among_the_tasks() -> None:
    with pytest.raises(UserError, match="lm-eval knows no task 'no-such-task'"):
        for_spec(RunSpec(benchmark="lm_eval:no-such-task"))
