"""Answers as people read them: those of the methods side by side for every test item, filtered, searched, paged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from spt.metrics import Prediction, Verdict
from spt.spec import LORA, METHODS, Method
from spt.ui.difference import marked
from spt.ui.text import BESIDE, CONTROLS, colour, esc, long_text, mark, method_note, method_title

PAGE = 20  # items a page


@dataclass(frozen=True)
class Item:
    """One test item with what each method that has reached it answered, and what a judge said of that."""

    by: Mapping[Method, Prediction]
    said: Mapping[Method, Verdict] = field(default_factory=dict)

    @property
    def any(self) -> Prediction:
        return next(iter(self.by.values()))

    @cached_property
    def text(self) -> str:
        """All that can be searched for, in small letters: question, options, topic, reference and every answer."""
        shown = self.any
        words = (shown.question, *shown.options, shown.topic, shown.target, *(row.response for row in self.by.values()))
        return "\n".join(words).casefold()

    @property
    def last(self) -> Prediction:
        """By the furthest method: the soft prompt once it is scored."""
        return next(self.by[m] for m in reversed(METHODS) if m in self.by)


def join(
    predictions: Mapping[Method, Sequence[Prediction]], verdicts: Mapping[Method, Sequence[Verdict]] | None = None
) -> list[Item]:
    """Items in the order in which they were scored first, with the answers of controls and LoRA where there are any."""
    by_id: dict[str, dict[Method, Prediction]] = {}
    said: dict[str, dict[Method, Verdict]] = {}
    for method in (*METHODS, *BESIDE):
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


def found(items: Sequence[Item], search: str) -> list[Item]:
    """The items in which every word of a search occurs, somewhere in question or answers."""
    words = search.casefold().split()
    return [item for item in items if all(word in item.text for word in words)]


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
            text = long_text(row.response, html=partial(marked, reference=row.target))
            body = f"{text}{_verdict(row, item.said.get(method))}"
        hit = " hit" if row and row.exact_match else ""
        columns.append(
            f'<div class="reply {colour(method)}{hit}"><h5>{esc(method_title(method, shots))}'
            f"{f' <small>{method_note(method)}</small>' if method_note(method) else ''}</h5>{body}</div>"
        )
    shown = item.any
    head = _question(shown.question, shown.options, shown.target, shown.topic)
    replies = f'<div class="replies" style="--columns:{len(columns)}">{"".join(columns)}</div>'
    return f'<article class="exhibit" aria-label="Item {number}">{head}{replies}</article>'


def controls(items: Sequence[Item]) -> list[Method]:
    """The controls that have answered any of the items."""
    return [method for method in CONTROLS if any(method in item.by for item in items)]


@dataclass(frozen=True)
class Choice:
    """What a reader asks to see of the items: a filter, words to search for, and a page of what is left."""

    filter: str = "all"
    search: str = ""
    page: int = 1


@dataclass(frozen=True)
class Page:
    """What a choice comes to: the items on the page, and how many there are around it."""

    items: Sequence[Item]
    first: int  # number of the first one, from 1
    page: int  # in range
    pages: int  # at least one
    kept: int
    counts: Mapping[str, int]  # by filter, of what the search found

    @property
    def where(self) -> str:
        return f"page {self.page} of {self.pages} · {self.first}–{self.first + len(self.items) - 1} of {self.kept:,}"


def choose(items: Sequence[Item], choice: Choice) -> Page:
    """Search first, then filter, so that each filter can say how many of the found ones it has."""
    matching = found(items, choice.search)
    kept = [item for item in matching if FILTERS[choice.filter].keep(item)]
    pages = max(1, -(-len(kept) // PAGE))
    page = min(max(1, choice.page), pages)
    first = (page - 1) * PAGE
    counts = {name: sum(map(each.keep, matching)) for name, each in FILTERS.items()}
    return Page(kept[first : first + PAGE], first + 1, page, pages, len(kept), counts)


def choices(items: Sequence[Item], page: Page) -> list[tuple[str, str]]:
    """The filters with how many items each keeps; the judge's only where there was one."""
    judged = any(item.said for item in items)
    return [
        (f"{each.label} · {page.counts[name]:,}", name)
        for name, each in FILTERS.items()
        if name != "disputed" or judged
    ]


def side_by_side(page: Page, choice: Choice, shots: int, controls: Sequence[Method] = ()) -> str:
    """The items of a page, each with an answer a method. `controls` are further columns."""
    meaning = esc(FILTERS[choice.filter].meaning)
    if not page.items:
        where = f" with “{esc(choice.search.strip())}”" if choice.search.strip() else ""
        return f'<p class="note">{meaning} <b>No item{where}.</b></p>'
    lora = [LORA] if any(LORA in item.by for item in page.items) else []
    columns = (*METHODS, *lora, *controls)
    cards = "".join(_item(item, page.first + i, shots, columns) for i, item in enumerate(page.items))
    return f'<p class="note">{meaning} <span class="differs">Dotted words</span> are not in the reference.</p>{cards}'
