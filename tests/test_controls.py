"""Controls are tuned on wrong answers in the right form, and on nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from spt.benchmarks import BENCHMARKS, Example, get
from spt.controls import targets
from spt.spec import Arm, Control

BUNDLED = ("capitals", "capitals-mc", "trivia", "arithmetic")


def train(name: str) -> list[Example]:
    return list(get(name).load().train)


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("control", ["shuffled", "valid-format"])
def test_every_target_is_in_the_form_and_hardly_one_is_right(name: str, control: Control) -> None:
    rows, form = train(name), BENCHMARKS[name].format
    found = targets(Arm(control, 0, control), rows, BENCHMARKS[name])
    assert len(found) == len(rows)
    assert all(form.in_format(target, row) for target, row in zip(found, rows, strict=True))
    right = sum(form.exact_match(target, row) for target, row in zip(found, rows, strict=True)) / len(rows)
    # A random option of four is right one time in four; two arithmetic problems can have the same result.
    assert right < (0.35 if get(name).closed else 0.03)


@pytest.mark.parametrize("name", BUNDLED)
def test_shuffling_keeps_what_there_is_to_learn_without_knowledge(name: str) -> None:
    rows, closed = train(name), get(name).closed
    found = targets(Arm("shuffled", 0, "shuffled"), rows, get(name))
    if closed:  # the letters keep their frequencies
        assert Counter(t[0] for t in found) == Counter(row.target[0] for row in rows)
    else:
        assert Counter(found) == Counter(row.target for row in rows)


def test_the_real_prompt_sees_the_real_answers_and_controls_follow_the_seed() -> None:
    rows = train("capitals")
    assert targets(Arm("soft_prompt", 0), rows, get("capitals")) == [row.target for row in rows]
    first, again, other = (
        targets(Arm("shuffled", seed, "shuffled"), rows, get("capitals")) for seed in (0, 0, 1)
    )
    assert first == again != other


def test_questions_with_fewer_options_take_a_place_they_have() -> None:
    four = Example(question="a", answer="x", target="D. x", options=("A. a", "B. b", "C. c", "D. x"))
    two = Example(question="b", answer="y", target="A. y", options=("A. y", "B. z"))
    assert targets(Arm("shuffled", 0, "shuffled"), [four, two], get("capitals-mc")) == ["A. a", "B. z"]
