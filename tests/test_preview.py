"""The preview shows what a prompt will hold, and loads no model for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from spt import models
from spt.benchmarks import get
from spt.preview import preview
from spt.prompting import Prompter
from spt.spec import RunSpec


def test_rows_with_the_target_apart() -> None:
    shown = preview(RunSpec(benchmark="capitals_mc"))
    benchmark = get("capitals-mc")
    split = benchmark.load()
    assert (shown.name, shown.closed, shown.format) == ("capitals-mc", True, "option copy")
    assert (shown.train, shown.test, shown.dropped) == (129, 64, {})
    assert len(shown.rows) == 5 and len(preview(RunSpec(), rows=2).rows) == 2
    first, row = split.train[0], shown.rows[0]
    options = "\n".join(first.options)
    assert row.context == f"{benchmark.instruction}\n\nQuestion: {first.question}\n{options}\nAnswer: "
    assert (row.target, row.topic) == (first.target, first.topic)
    assert "Asia" in shown.topics


def test_it_is_what_the_model_sees(bundled: models.LoadedModel) -> None:
    benchmark = get("capitals-mc")
    split = benchmark.load()
    prompter = Prompter(bundled.tokenizer, benchmark, False, (), bundled.eos_ids, {})
    row = preview(RunSpec(benchmark="capitals-mc")).rows[0]
    ids = prompter.context(split.train[0], "zero_shot") + prompter.answer(split.train[0].target)
    assert bundled.tokenizer.decode(ids) == row.context + row.target


def test_a_held_out_topic_is_not_shown(tmp_path: Path) -> None:
    shown = preview(RunSpec(benchmark="capitals", holdout_topic="Africa"))
    assert all(row.topic != "Africa" for row in shown.rows) and shown.topics == ("Africa",)


def test_it_loads_no_heavy_library(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text("".join(json.dumps({"question": f"{i}?", "answer": f"word{i}"}) + "\n" for i in range(10)))
    heavy = ("torch", "transformers", "datasets", "gradio")
    code = (
        "import sys\nfrom spt.preview import preview\nfrom spt.spec import RunSpec\n"
        f"print(preview(RunSpec(benchmark={str(file)!r})).rows[0].target)\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0].startswith("word") and done.stdout.splitlines()[1] == "[]"
