"""Small pieces of HTML and wording that every part of the page shares. All text from outside goes through `esc`."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from pathlib import Path

from spt.benchmarks import BENCHMARKS
from spt.metrics import Rate
from spt.spec import LORA, METHODS, TUNED_ITEMS, Method

# Classes of the style sheet, where each has its one colour and dash: a method looks the same wherever it stands.
COLOUR: dict[Method, str] = {
    "zero_shot": "zero",
    "few_shot": "few",
    "soft_prompt": "soft",
    "shuffled": "shuffled",
    "valid-format": "valid",
    TUNED_ITEMS: "tuned",
    LORA: "lora",
}
CONTROLS: tuple[Method, ...] = ("shuffled", "valid-format")
BESIDE: tuple[Method, ...] = (*CONTROLS, LORA)  # methods that answer the same items beside the three

METRICS: dict[str, str] = {"format": "Format following", "knowledge": "Knowledge", "exact_match": "Exact match"}


def esc(text: object) -> str:
    """Text as text: nothing in it can become markup."""
    return escape(str(text), quote=True)


def method_title(method: Method, shots: int | None = None) -> str:
    """How a method is called on the page; few-shot says how many shots where that is known."""
    if method == "few_shot":
        return f"{shots}-shot" if shots else "Few-shot"
    known = {
        "zero_shot": "Zero-shot",
        "soft_prompt": "Soft prompt",
        "shuffled": "Shuffled answers",
        "valid-format": "Any valid answer",
        TUNED_ITEMS: "Tuned items",
        LORA: "LoRA",
    }
    return known.get(method) or f"Seed {method.removeprefix('seed-')}"


def method_note(method: Method) -> str:
    """What a further method is, in a few words; empty for the three that every run has."""
    if method in METHODS:
        return ""
    if method in CONTROLS:
        return "control"
    if method == LORA:
        return "adapter, same rows"
    return "soft prompt, on rows it was tuned on" if method == TUNED_ITEMS else "soft prompt"


def colour(method: Method) -> str:
    """The style sheet's class of a method; further seeds share one."""
    return COLOUR.get(method, "seed")


def points(difference: float) -> str:
    """A difference of two shares in percentage points; a minus is a real minus."""
    value = round(difference * 100)
    return f"{'−' if value < 0 else ''}{abs(value)}"


def signed(share: float) -> str:
    """`+12`, `−3`, `0`: a difference of two shares in points, with its sign."""
    return f"+{points(share)}" if round(share * 100) > 0 else points(share)


def between(low: float, high: float) -> str:
    return f"{signed(low)} to {signed(high)}"


def p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def interval(rate: Rate) -> str:
    """`51–72 %`: the 95 % interval of a rate."""
    return f"{rate.low * 100:.0f}–{rate.high * 100:.0f}\u202f%"


def mark(yes: bool, label: str, otherwise: str = "", more: str = "") -> str:
    """A pill that says whether `label` holds: by word, sign and shape, never by colour alone."""
    kind, sign, words = ("yes", "✓", label) if yes else ("no", "✕", otherwise or f"not {label}")
    return f'<span class="mark {kind}{f" {more}" if more else ""}"><i aria-hidden="true">{sign}</i>{esc(words)}</span>'


def marks(right: bool, in_format: bool) -> str:
    """The two marks of an answer."""
    return f'<span class="marks">{mark(right, "right")}{mark(in_format, "in format")}</span>'


def long_text(text: str, limit: int = 200, html: Callable[[str], str] = esc) -> str:
    """Text with its line breaks; what is longer than `limit` folds behind a click. An empty answer says so.

    `html` makes markup of a text; all it does not mark itself it must escape.
    """
    if not text.strip():
        return '<p class="answer-text empty">(empty answer)</p>'
    lines = text.split("\n")
    if len(text) <= limit and len(lines) <= 8:
        return f'<p class="answer-text">{html(text)}</p>'
    head = "\n".join(lines[:8])[:limit].rstrip()
    return (
        f'<details class="long"><summary><span class="answer-text">{html(head)} …</span>'
        f'<span class="more">show all {len(text):,} characters</span></summary>'
        f'<p class="answer-text">{html(text)}</p></details>'
    )


def benchmark_title(benchmark: str) -> str:
    """How a run's benchmark is called: its name, or that of the file without its folder and an upload's hash."""
    if benchmark in BENCHMARKS or "/" not in benchmark:
        return benchmark
    return re.sub(r"^[0-9a-f]{12}-", "", Path(benchmark).name)


def short_model(model: str) -> str:
    """The last part of a hub id or path."""
    return model.rstrip("/\\").replace("\\", "/").split("/")[-1] or model
