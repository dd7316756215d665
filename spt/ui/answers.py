"""Answers as people read them: side by side for every test item, and one question from step to step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spt.events import Probe, ProbeAnswer, Question
from spt.metrics import Prediction
from spt.spec import METHODS, Method
from spt.ui.scores import COLOUR
from spt.ui.text import esc, long_text, mark, method_title
from spt.view import count

PAGE = 20  # items a page


@dataclass(frozen=True)
class Item:
    """One test item with what each method that has reached it answered."""

    by: Mapping[Method, Prediction]

    @property
    def any(self) -> Prediction:
        return next(iter(self.by.values()))

    @property
    def last(self) -> Prediction:
        """By the furthest method: the soft prompt once it is scored."""
        return next(self.by[m] for m in reversed(METHODS) if m in self.by)


def join(predictions: Mapping[Method, Sequence[Prediction]]) -> list[Item]:
    """Items in the order in which they were scored first."""
    by_id: dict[str, dict[Method, Prediction]] = {}
    for method in METHODS:
        for row in predictions.get(method, ()):
            by_id.setdefault(row.id, {})[method] = row
    return [Item(by) for by in by_id.values()]


def lost_to_format(item: Item) -> bool:
    """A baseline is right but not in the form: knowledge that the score does not see."""
    baselines: tuple[Method, ...] = ("zero_shot", "few_shot")
    return any(item.by[m].knows and not item.by[m].in_format for m in baselines if m in item.by)


def changed(item: Item) -> bool:
    """The soft prompt's marks differ from zero-shot's."""
    zero, soft = item.by.get("zero_shot"), item.by.get("soft_prompt")
    if zero is None or soft is None:
        return False
    return (zero.knows, zero.in_format, zero.exact_match) != (soft.knows, soft.in_format, soft.exact_match)


def wrong(item: Item) -> bool:
    """Not right by the furthest method, in the form or not."""
    return not item.last.knows


@dataclass(frozen=True)
class Filter:
    label: str
    meaning: str
    keep: Callable[[Item], bool]


FILTERS: dict[str, Filter] = {
    "all": Filter("All", "Every scored test item.", lambda item: True),
    "lost": Filter(
        "Right but not in format",
        "Zero-shot or few-shot is right, but not in the form the benchmark wants: the score counts it as wrong.",
        lost_to_format,
    ),
    "changed": Filter(
        "Changed by the prompt", "The marks of the soft prompt's answer differ from those of zero-shot.", changed
    ),
    "wrong": Filter("Wrong", "Not right with the soft prompt (until it is scored: with the latest method).", wrong),
}


def choices(items: Sequence[Item]) -> list[tuple[str, str]]:
    """The filters with how many items each keeps."""
    return [(f"{f.label} · {sum(map(f.keep, items))}", name) for name, f in FILTERS.items()]


def pages(items: Sequence[Item], name: str) -> int:
    """How many pages a filter fills, at least one."""
    return max(1, -(-sum(map(FILTERS[name].keep, items)) // PAGE))


def _verdict(row: Prediction) -> str:
    if row.options:
        # Closed: knowledge is the ranking of the options, so the written answer needs its own mark.
        found = [
            mark(row.knows, "ranked first"),
            mark(row.in_format, "in format"),
            mark(row.exact_match, "exact match"),
        ]
    else:
        found = [mark(row.knows, "right"), mark(row.in_format, "in format")]
    stopped = {"length": "cut off at the length limit", "loop": "stopped: repeats itself"}.get(row.stopped_by)
    note = f'<span class="mark plain">{stopped}</span>' if stopped else ""
    return f'<span class="marks">{"".join(found)}{note}</span>'


def _question(question: str, options: Sequence[str], target: str, topic: str) -> str:
    listed = "".join(f"<li>{esc(option)}</li>" for option in options)
    tag = f'<span class="topic">{esc(topic)}</span>' if topic else ""
    return (
        f'<header>{tag}<div class="question">{long_text(question, 600)}</div>'
        f"{f'<ul class=choices>{listed}</ul>' if listed else ''}"
        f'<div class="wanted"><span>Reference</span>{long_text(target)}</div></header>'
    )


def _item(item: Item, number: int, shots: int) -> str:
    columns = []
    for method in METHODS:
        row = item.by.get(method)
        body = f"{long_text(row.response)}{_verdict(row)}" if row else '<p class="answer-text empty">not yet</p>'
        hit = " hit" if row and row.exact_match else ""
        columns.append(
            f'<div class="reply {COLOUR[method]}{hit}"><h5>{esc(method_title(method, shots))}</h5>{body}</div>'
        )
    shown = item.any
    head = _question(shown.question, shown.options, shown.target, shown.topic)
    replies = f'<div class="replies">{"".join(columns)}</div>'
    return f'<article class="exhibit" aria-label="Item {number}">{head}{replies}</article>'


def side_by_side(items: Sequence[Item], name: str, page: int, shots: int) -> str:
    """One page of a filter. `page` counts from 1 and is brought into range."""
    kept = [item for item in items if FILTERS[name].keep(item)]
    if not items:
        return '<p class="note">Answers appear here as soon as the first method is scored.</p>'
    page = min(max(1, page), pages(items, name))
    first = (page - 1) * PAGE
    shown = kept[first : first + PAGE]
    span = f"{first + 1}–{first + len(shown)} of {count(len(kept), 'item')}" if shown else "no item"
    cards = "".join(_item(item, first + i + 1, shots) for i, item in enumerate(shown))
    return f'<p class="note">{esc(FILTERS[name].meaning)} <b>{span}</b></p>{cards}'


def probe_choices(questions: Sequence[Question]) -> list[tuple[str, str]]:
    """Followed questions for a dropdown, cut to one line."""
    lines = [(" ".join(q.question.split()), q.id) for q in questions]
    return [(line if len(line) <= 90 else line[:88] + " …", name) for line, name in lines]


def interesting(probes: Sequence[Probe], questions: Sequence[Question]) -> str | None:
    """The followed question to show first: the one whose marks change most often, and that ends well."""
    if not questions:
        return None

    def weight(question: Question) -> tuple[bool, int]:
        found = [a for a in (_answer(p, question.id) for p in probes) if a]
        turns = sum((a.right, a.in_format) != (b.right, b.in_format) for a, b in pairwise(found))
        good = bool(found) and found[-1].right and found[-1].in_format
        return (good and turns > 0, turns)

    return max(questions, key=weight).id


def _answer(probe: Probe, question: str) -> ProbeAnswer | None:
    return next((a for a in probe.answers if a.id == question), None)


def timeline(question: Question | None, probes: Sequence[Probe]) -> str:
    """One question's answer at every probe, from the untrained prompt on. An unchanged answer is drawn faint."""
    if question is None:
        return '<p class="note">The answers to a few test items are followed here while the prompt is tuned.</p>'
    rows, before = [], None
    for probe in probes:
        answer = _answer(probe, question.id)
        if answer is None:
            continue
        same = " same" if before is not None and before.response == answer.response else ""
        hit = " hit" if answer.right and answer.in_format else ""
        label = "ranked first" if question.options else "right"
        verdict = f'<span class="marks">{mark(answer.right, label)}{mark(answer.in_format, "in format")}</span>'
        rows.append(
            f'<li class="moment{same}{hit}"><span class="step"><small>step</small> {probe.step}</span>'
            f'<div class="said">{long_text(answer.response)}</div>{verdict}</li>'
        )
        before = answer
    body = f'<ol class="timeline">{"".join(rows)}</ol>' if rows else '<p class="note">No probe yet.</p>'
    head = _question(question.question, question.options, question.target, question.topic)
    return f'<div class="card watch">{head}{body}</div>'
