"""What the Playground draws: a question with the methods' answers as they grow, and questions to begin with."""

from __future__ import annotations

from collections.abc import Sequence

from spt.questions import Ask, Reply, Said
from spt.spec import METHODS, Method
from spt.ui.answers import Item
from spt.ui.text import colour, esc, long_text, mark, method_title
from spt.view import count

EXAMPLES = 3
RANKED = "For each option log p in nats, and its share among the options. The highest is bold."
STOPPED = {"length": "cut off at the length limit", "loop": "stopped: repeats itself"}


def before_html(runs: int, run: str, questions: int) -> str:
    """What a question waits for. `run` names the run that has the device."""
    parts = [count(number, name) for number, name in ((runs, "run"), (questions, "question")) if number]
    if not parts:
        return state_html("Starting …", True)
    now = f": {run} is at work" if runs else ""
    return state_html(f"Waiting for {' and '.join(parts)} before this one{now} …", True)


def state_html(words: str, moving: bool = False) -> str:
    """The line that says what goes on."""
    return f'<p class="asked-state{" moving" if moving else ""}" role="status">{esc(words)}</p>'


def problem_html(problem: str) -> str:
    return f'<div class="problem" role="alert"><b>No answer.</b> {esc(problem)}</div>'


def answer_html(ask: Ask, reply: Reply | None, shots: int) -> str:
    """The question and a column for every method, from the moment it is asked on."""
    example = ask.example
    options = "".join(f"<li>{esc(option)}</li>" for option in example.options)
    listed = f'<ul class="choices">{options}</ul>' if options else ""
    wanted = f'<div class="wanted"><span>Reference</span>{long_text(example.target)}</div>' if ask.marked else ""
    said = reply.said if reply else {}
    columns = "".join(_column(method, said.get(method), ask, shots) for method in METHODS)
    note = f'<p class="note ranked">{RANKED}</p>' if any(each.logprobs for each in said.values()) else ""
    return (
        '<article class="exhibit asked" aria-label="Answers"><header>'
        f'<div class="question">{long_text(example.question, 600)}</div>{listed}{wanted}</header>'
        f'<div class="replies" style="--columns:{len(METHODS)}">{columns}</div>{note}</article>'
    )


def _column(method: Method, said: Said | None, ask: Ask, shots: int) -> str:
    if said is None or (not said.text and said.stopped_by is None):
        body = '<p class="answer-text empty">…</p>'
    elif said.stopped_by is None:
        body = f'<p class="answer-text">{esc(said.text)}<i class="caret" aria-hidden="true"></i></p>'
    else:
        body = f"{long_text(said.text, 600)}{_marks(said)}{_ranks(said, ask.example.options)}"
    hit = " hit" if said is not None and said.exact_match else ""
    return f'<div class="reply {colour(method)}{hit}"><h5>{esc(method_title(method, shots))}</h5>{body}</div>'


def _marks(said: Said) -> str:
    """In format or not; right or not where the reference is known."""
    found = [mark(bool(said.in_format), "in format")]
    if said.knows is not None:
        found.insert(0, mark(said.knows, "ranked first" if said.logprobs else "right"))
        if said.logprobs:
            found.append(mark(bool(said.exact_match), "exact match"))
    if note := STOPPED.get(said.stopped_by or ""):
        found.append(f'<span class="mark plain">{note}</span>')
    return f'<span class="marks">{"".join(found)}</span>'


def _ranks(said: Said, options: Sequence[str]) -> str:
    """log p of every option as number and bar, the highest marked."""
    if not said.logprobs:
        return ""
    rows = []
    for option, value, share in zip(options, said.logprobs, said.shares, strict=True):
        best = value == max(said.logprobs)
        words = f"{value:.2f}".replace("-", "−")
        unseen = '<span class="unseen">, the highest</span>' if best else ""
        rows.append(
            f'<li{" class=best" if best else ""}><span class="option">{esc(option)}{unseen}</span>'
            f'<span class="amount"><b>{words}</b> {share * 100:.0f}\u202f%</span>'
            f'<span class="rail"><i style="width:{share * 100:.1f}%"></i></span></li>'
        )
    return f'<ol class="ranks">{"".join(rows)}</ol>'


def _pattern(item: Item) -> tuple[tuple[bool, bool], ...]:
    return tuple((item.by[m].knows, item.by[m].exact_match) for m in METHODS)


def _differs(item: Item) -> bool:
    return len(set(_pattern(item))) > 1


def telling(items: Sequence[Item]) -> list[Item]:
    """A few test questions, those first that the methods answered differently, each in another way."""

    def weight(item: Item) -> tuple[bool, bool, bool, int]:
        zero, soft = item.by["zero_shot"], item.by["soft_prompt"]
        won = soft.exact_match and not zero.exact_match
        return (_differs(item), won and zero.knows, won, len({item.by[m].response for m in METHODS}))

    whole = [item for item in items if all(method in item.by for method in METHODS)]
    ordered = sorted(whole, key=weight, reverse=True)
    first = {_pattern(item): item for item in reversed(ordered) if _differs(item)}  # the most telling of each pattern
    chosen = sorted(first.values(), key=weight, reverse=True)
    return [*chosen, *(item for item in ordered if item not in chosen)][:EXAMPLES]


def examples_html(items: Sequence[Item], shots: int) -> str:
    """Buttons that ask a test question of the run, with how its methods scored on it."""
    if not items:
        return ""

    def verdict(item: Item, method: Method) -> str:
        hit = item.by[method].exact_match
        sign, words = ("✓", "exact match") if hit else ("✕", "no exact match")
        return (
            f'<span class="{colour(method)}"><i class="swatch {colour(method)}"></i>{esc(method_title(method, shots))} '
            f'<b aria-hidden="true">{sign}</b><span class="unseen">{words}</span></span>'
        )

    buttons = "".join(
        f'<li><button type="button" data-example="{esc(item.any.id)}"><span class="line">{esc(_line(item))}</span>'
        f'<span class="scored">{"".join(verdict(item, method) for method in METHODS)}</span></button></li>'
        for item in items
    )
    differ = all(map(_differs, items))
    title = "Questions on which this run’s methods differ" if differ else "Test questions of this run"
    return f'<div class="examples"><h4>{title} <small>exact match</small></h4><ul>{buttons}</ul></div>'


def _line(item: Item) -> str:
    line = " ".join(item.any.question.split())
    return line if len(line) <= 140 else line[:138] + " …"
