"""Answers that change: those to a few followed questions, from step to step, for the browser to play back.

Everything a playback needs travels once, as data; `assets/playback.js` draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from spt.events import Probe, ProbeAnswer, Question

MOST = 4  # questions at a time
FIRST = 2  # shown before anybody has chosen
# While a run goes on its answers travel again with every probe, so they are kept short; afterwards they are whole.
LIVE_MOMENTS, LIVE_TEXT = 12, 300
QUESTION_TEXT = 600


def choices(questions: Sequence[Question]) -> list[tuple[str, str]]:
    """Followed questions for a list to choose from, cut to one line."""
    return [(_cut(" ".join(q.question.split()), 90), q.id) for q in questions]


def telling(probes: Sequence[Probe], questions: Sequence[Question], most: int = FIRST) -> list[str]:
    """The followed questions to show first: those whose marks change most often, best ones that end well."""

    def weight(question: Question) -> tuple[bool, int]:
        found = [answer for probe in probes if (answer := _answer(probe, question.id))]
        turns = sum((a.right, a.in_format) != (b.right, b.in_format) for a, b in pairwise(found))
        good = bool(found) and found[-1].right and found[-1].in_format
        return (good and turns > 0, turns)

    return [question.id for question in sorted(questions, key=weight, reverse=True)[:most]]


def playback(
    run: str, questions: Sequence[Question], probes: Sequence[Probe], steps: int, text: int | None = None
) -> dict[str, Any]:
    """The questions with their answers, cut to `text` characters. `null` in `moments` is the same answer as before."""
    return {
        "run": run,
        "of": steps,
        "steps": [probe.step for probe in probes],
        "questions": [_question(question, probes, text) for question in questions],
    }


def live_playback(run: str, questions: Sequence[Question], probes: Sequence[Probe], steps: int) -> dict[str, Any]:
    """The same for a run that goes on: a few steps, evenly picked, first and last among them, and short texts."""
    shown = list(probes)
    if len(shown) > LIVE_MOMENTS:
        shown = [shown[round(i * (len(shown) - 1) / (LIVE_MOMENTS - 1))] for i in range(LIVE_MOMENTS)]
    return playback(run, questions, shown, steps, LIVE_TEXT)


def _question(question: Question, probes: Sequence[Probe], most: int | None) -> dict[str, Any]:
    moments: list[dict[str, Any] | None] = []
    before = None
    for probe in probes:
        answer = _answer(probe, question.id)
        moment = None
        if answer is not None:
            moment = {"text": _cut(answer.response, most), "right": answer.right, "form": answer.in_format}
        moments.append(None if moment == before else moment)
        before = moment or before
    return {
        "id": question.id,
        "question": _cut(question.question, QUESTION_TEXT),
        "options": question.options,
        "target": _cut(question.target, QUESTION_TEXT),
        "topic": question.topic,
        "right": "ranked first" if question.options else "right",
        "moments": moments,
    }


def _answer(probe: Probe, question: str) -> ProbeAnswer | None:
    return next((answer for answer in probe.answers if answer.id == question), None)


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else f"{text[: most - 2].rstrip()} …"
