"""Answers as people read them: side by side for every test item, and one question from step to step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from spt.events import Probe, ProbeAnswer, Question
from spt.metrics import Prediction, Verdict
from spt.spec import METHODS, Method
from spt.ui.text import CONTROLS, colour, esc, long_text, mark, method_note, method_title
from spt.view import count

PAGE = 20  # items a page


@dataclass(frozen=True)
class Item:
    """One test item with what each method that has reached it answered, and what a judge said of that."""

    by: Mapping[Method, Prediction]
    said: Mapping[Method, Verdict] = field(default_factory=dict)

    @property
    def any(self) -> Prediction:
        return next(iter(self.by.values()))

    @property
    def last(self) -> Prediction:
        """By the furthest method: the soft prompt once it is scored."""
        return next(self.by[m] for m in reversed(METHODS) if m in self.by)


def join(
    predictions: Mapping[Method, Sequence[Prediction]], verdicts: Mapping[Method, Sequence[Verdict]] | None = None
) -> list[Item]:
    """Items in the order in which they were scored first, with the controls' answers where there are any."""
    by_id: dict[str, dict[Method, Prediction]] = {}
    said: dict[str, dict[Method, Verdict]] = {}
    for method in (*METHODS, *CONTROLS):
        for row in predictions.get(method, ()):
            by_id.setdefault(row.id, {})[method] = row
        for verdict in (verdicts or {}).get(method, ()):
            said.setdefault(verdict.id, {})[method] = verdict
    return [Item(by, said.get(name, {})) for name, by in by_id.items()]


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


def disputed(item: Item) -> bool:
    """The judge contradicts the rule on one of the three answers."""
    return any(
        said.correct is not None and method in item.by and said.correct != item.by[method].knows
        for method, said in item.said.items()
        if method in METHODS
    )


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
    "disputed": Filter(
        "Judge disagrees", "The judge and the rule say different things of one of the three answers.", disputed
    ),
}


def choices(items: Sequence[Item]) -> list[tuple[str, str]]:
    """The filters with how many items each keeps; the judge's only where there was one."""
    judged = any(item.said for item in items)
    return [
        (f"{f.label} · {sum(map(f.keep, items))}", name)
        for name, f in FILTERS.items()
        if name != "disputed" or judged
    ]


def pages(items: Sequence[Item], name: str) -> int:
    """How many pages a filter fills, at least one."""
    return max(1, -(-sum(map(FILTERS[name].keep, items)) // PAGE))


def _judge_mark(said: Verdict | None) -> str:
    if said is None:
        return ""
    if said.correct is None:
        return '<span class="mark judge">judge: unreadable</span>'
    return mark(said.correct, "judge: right", "judge: not right", "judge")


def _verdict(row: Prediction, said: Verdict | None = None) -> str:
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
    return f'<span class="marks">{"".join(found)}{_judge_mark(said)}{note}</span>'


def _question(question: str, options: Sequence[str], target: str, topic: str) -> str:
    listed = "".join(f"<li>{esc(option)}</li>" for option in options)
    tag = f'<span class="topic">{esc(topic)}</span>' if topic else ""
    return (
        f'<header>{tag}<div class="question">{long_text(question, 600)}</div>'
        f"{f'<ul class=choices>{listed}</ul>' if listed else ''}"
        f'<div class="wanted"><span>Reference</span>{long_text(target)}</div></header>'
    )


def _item(item: Item, number: int, shots: int, methods: Sequence[Method]) -> str:
    columns = []
    for method in methods:
        row = item.by.get(method)
        body = '<p class="answer-text empty">not yet</p>'
        if row:
            body = f"{long_text(row.response)}{_verdict(row, item.said.get(method))}"
        hit = " hit" if row and row.exact_match else ""
        columns.append(
            f'<div class="reply {colour(method)}{hit}"><h5>{esc(method_title(method, shots))}'
            f"{f' <small>{method_note(method)}</small>' if method_note(method) else ''}</h5>{body}</div>"
        )
    shown = item.any
    head = _question(shown.question, shown.options, shown.target, shown.topic)
    replies = f'<div class="replies" style="--columns:{len(columns)}">{"".join(columns)}</div>'
    return f'<article class="exhibit" aria-label="Item {number}">{head}{replies}</article>'


def has_controls(items: Sequence[Item]) -> bool:
    return any(method in item.by for item in items for method in CONTROLS)


def side_by_side(items: Sequence[Item], name: str, page: int, shots: int, controls: bool = False) -> str:
    """One page of a filter. `page` counts from 1 and is brought into range. `controls` adds their columns."""
    kept = [item for item in items if FILTERS[name].keep(item)]
    if not items:
        return '<p class="note">Answers appear here as soon as the first method is scored.</p>'
    page = min(max(1, page), pages(items, name))
    first = (page - 1) * PAGE
    shown = kept[first : first + PAGE]
    span = f"{first + 1}–{first + len(shown)} of {count(len(kept), 'item')}" if shown else "no item"
    further = [m for m in CONTROLS if any(m in item.by for item in items)] if controls else []
    columns = (*METHODS, *further)
    cards = "".join(_item(item, first + i + 1, shots, columns) for i, item in enumerate(shown))
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
