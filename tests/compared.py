"""Finished runs that can be compared, of a base and a post-trained model, without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spt.benchmarks.base import Example
from spt.metrics import Prediction
from spt.spec import METHODS, Method, RunSpec
from spt.store import RunFolder
from tests.whole import whole_run

BASE, POST = "Qwen/Qwen3-0.6B-Base", "Qwen/Qwen3-0.6B"
KNOWN = {BASE: 6, POST: 5}  # of ten items
FORMED = {BASE: 2, POST: 5}  # of ten zero-shot answers


def run(model: str = BASE, items: int = 16, benchmark: str = "capitals", **settings: Any) -> RunFolder:
    """A run with curves: zero-shot often in prose, the soft prompt in the form; each model knows its own share."""

    def respond(method: Method, number: int, item: Example) -> str:
        known, formed = KNOWN.get(model, 4), {"zero_shot": FORMED.get(model, 3), "few_shot": 7}.get(method, 10)
        right = (number * 7 + len(model)) % 10 < known + (method != "zero_shot")
        if item.options:
            return item.target if right else item.options[number % len(item.options)]
        answer = item.answer if right else "Atlantis"
        return f"#### {answer}" if number * 3 % 10 < formed else f"I believe that it is {answer}, but am not sure."

    return whole_run(RunSpec.parse(model=model, benchmark=benchmark, items=items, **settings), respond)


def altered(folder: RunFolder, method: Method, alter: Callable[[int, Prediction], Mapping[str, Any]]) -> None:
    """Change stored answers of a method: `alter` says what of each."""
    rows = folder.predictions(method)
    folder.write_predictions(method, [row.model_copy(update=dict(alter(i, row))) for i, row in enumerate(rows)])


def looping(folder: RunFolder, number: int) -> None:
    """That zero-shot answer repeats itself until it is cut off, and is not captured."""

    def alter(i: int, row: Prediction) -> Mapping[str, Any]:
        loop = {"stopped_by": "loop", "response": "It is. " * 40, "in_format": False, "exact_match": False}
        return loop if i == number else {}

    altered(folder, "zero_shot", alter)


def without(folder: RunFolder, *numbers: int) -> None:
    """These items are not answered."""
    for method in METHODS:
        rows = folder.predictions(method)
        folder.write_predictions(method, [row for i, row in enumerate(rows) if i not in numbers])
