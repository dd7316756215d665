"""Where an answer ends, and that batch mates do not change it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spt import models
from spt.benchmarks import get
from spt.generation import _finish, generate, loops


def test_answers_do_not_depend_on_batch_mates(tiny: Callable[[str], Path]) -> None:
    loaded = models.load(str(tiny("gemma3_text")))
    form = get("arithmetic").format
    rows = [[5, 6, 7], list(range(20, 60)), [99]]
    together = generate(loaded, rows, form)
    assert together == [generate(loaded, [row], form)[0] for row in rows]
    assert len({answer.text for answer in together}) == 3


def test_a_looping_row_is_one_whatever_its_batch_mates(bundled: models.LoadedModel) -> None:
    """Where the pad token also ends answers, a row that stopped early is padded with what looks like EOS."""
    row = bundled.tokenizer("so it is\n" * 4)["input_ids"]
    form = get("arithmetic").format
    assert _finish(bundled, row, form) == _finish(bundled, [*row, *[bundled.pad_id] * 6], form)
    assert _finish(bundled, row, form).stopped_by == "loop"


def test_loops_are_seen_only_in_complete_lines() -> None:
    assert loops("a\nb\nb\nb\n")
    assert loops("b\n\nb\n\nb\n")
    assert not loops("b\nb\nb")
    assert not loops("b\nb\nc\n")
    assert not loops("")


def test_the_real_model_stops_by_rule_and_by_end_token(bundled: models.LoadedModel) -> None:
    form = get("capitals").format
    texts = ["The capital of France is the city of", "2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,"]
    rows = [bundled.tokenizer(text)["input_ids"] for text in texts]
    answers = generate(bundled, rows, form)
    assert "Paris" in answers[0].text
    assert answers[1].stopped_by == "length"
