"""The one place where the numbers of an analysis become sentences, for command line, page and report.

A finding says what was measured, with its numbers, and no more than they carry. On open questions "knows" means that a
right answer was found in the text; a rise may come from prose that never got to the point, so the words are "right
answers" there and "knowledge" only where options were ranked.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log10
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from spt.spec import LORA, TUNED_ITEMS, Control, Method
from spt.stats import ALPHA, Equivalence, PairedDifference, UnpairedDifference

if TYPE_CHECKING:
    from spt.analysis import Analysis

Kind = Literal[
    "few", "format_tax", "format", "score", "knowledge", "control", "memorised", "letters", "chance", "seeds", "lora",
]
Tone = Literal["good", "bad", "neutral"]

FEW = 16  # test items below which nothing is told apart: a rate of 50 % has a 95 % interval of 28 to 72 % there
SMALL_TAX = 0.03  # a smaller format tax is no bad news, "almost nothing" in a headline
REACHED = 0.9  # format following that counts as learnt
SETTLED = 0.8  # share of answers that begin with one letter
MEMORISED = 0.1  # an interval that reaches further cannot rule memorising out
WIDE = 0.1  # range over seeds above which one seed says little

_METHODS: dict[Method, str] = {"zero_shot": "zero-shot", "few_shot": "few-shot"}
_SAW: dict[Control, str] = {"shuffled": "shuffled answers", "valid-format": "random answers in the right form"}


class Finding(BaseModel):
    """One sentence about a run. `tone` is what it means for reading the score as one of knowledge."""

    model_config = ConfigDict(frozen=True)
    kind: Kind
    tone: Tone
    text: str


def percent(share: float) -> str:
    """`62 %`, with a thin no-break space, as the page writes it."""
    return f"{share * 100:.0f}\u202f%"


def _number(share: float, sign: bool = False) -> str:
    value = round(share * 100)
    return f"{'−' if value < 0 else '+' if sign and value else ''}{abs(value)}"


def _points(share: float, sign: bool = False) -> str:
    return f"{_number(share, sign)} {'point' if abs(round(share * 100)) == 1 else 'points'}"


def _p(p: float) -> str:
    if p < 0.001:
        return "p < 0.001"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"  # three places about 0.05, so that 0.046 is not "0.05"


def _interval(result: PairedDifference | UnpairedDifference) -> str:
    return f"95\u202f% interval {_number(result.low)} to {_number(result.high)}"


def evidence(result: PairedDifference) -> str:
    """The numbers behind a comparison, as they stand in brackets."""
    return f"difference {_points(result.difference, sign=True)}, {_interval(result)}, {_p(result.p)}, n = {result.n:,}"


def _rose(result: PairedDifference | Equivalence) -> str:
    return f"{percent(result.rate_a)} → {percent(result.rate_b)}"


def about(number: int) -> str:
    """Two leading digits, rounded up: a number of items is never known better."""
    unit = 10 ** max(0, int(log10(number)) - 1)
    return f"{ceil(number / unit) * unit:,}"


def _significant(result: PairedDifference | None) -> bool:
    return result is not None and result.p < ALPHA


def tell(analysis: Analysis) -> list[Finding]:
    """All findings, in the order in which they are best read. Nothing is said about what was not measured."""
    parts = (_tax, _format, _score, _knowledge, _controls, _memorised, _letters, _seeds, _lora)
    found = [finding for part in parts for finding in part(analysis)]
    items = max((cells.n for method, cells in analysis.cells.items() if method != TUNED_ITEMS), default=FEW)
    if items >= FEW or not found:
        return found
    # Nor is anything good or bad then, whatever the numbers happen to be.
    few = Finding(kind="few", tone="neutral", text=f"{too_few(items)}: what follows are counts, and no evidence.")
    return [few, *(finding.model_copy(update={"tone": "neutral"}) for finding in found)]


def too_few(items: int) -> str:
    """`4 test items are too few to tell`."""
    return "1 test item is too few to tell" if items == 1 else f"{items} test items are too few to tell"


def _tax(analysis: Analysis) -> Iterator[Finding]:
    cells = analysis.cells.get("zero_shot")
    if cells is None:
        return
    lost = cells.knows_out
    if not cells.knows_in + lost:
        text = f"Format tax: nothing to lose, none of {cells.n:,} zero-shot answers is right in any form."
        yield Finding(kind="format_tax", tone="neutral", text=text)
        return
    count = f"{lost:,} of {cells.n:,}" if lost else f"none of {cells.n:,}"
    one = lost <= 1
    if analysis.closed:  # the ranking of the options says what is known; the answer that was written may be another
        what = f"{'is' if one else 'are'} out of form where the right option ranks first"
    else:
        what = f"{'is' if one else 'are'} right but not in the form"
    tone: Tone = "bad" if lost / cells.n >= SMALL_TAX else "good"
    text = f"Format tax: {count} zero-shot answers {what}."
    yield Finding(kind="format_tax", tone=tone, text=text)


def _format(analysis: Analysis) -> Iterator[Finding]:
    result = analysis.comparison("zero_shot", "soft_prompt", "format")
    if result is None:
        return
    cells = analysis.cells["soft_prompt"]
    some_right = cells.knows_in + cells.knows_out > 0
    learnt: Tone = "good" if result.rate_b >= REACHED and some_right else "neutral"
    evidence = f"({_p(result.p)}, n = {result.n:,})"
    if not _significant(result):
        text = f"Format following is {percent(result.rate_b)} with the soft prompt, {percent(result.rate_a)} zero-shot"
        yield Finding(kind="format", tone=learnt, text=f"{text}: no measurable difference {evidence}.")
    elif result.difference > 0:
        text = f"Format following rises with the soft prompt: {_rose(result)} {evidence}."
        yield Finding(kind="format", tone=learnt, text=text)
    else:
        text = f"Format following falls with the soft prompt: {_rose(result)} {evidence}."
        yield Finding(kind="format", tone="bad", text=text)


def _score(analysis: Analysis) -> Iterator[Finding]:
    result = analysis.comparison("zero_shot", "soft_prompt", "exact_match")
    if result is None:
        return
    verb = "does not measurably change" if not _significant(result) else "rises" if result.difference > 0 else "falls"
    text = f"Exact match {verb} with the soft prompt: {_rose(result)} ({evidence(result)})."
    yield Finding(kind="score", tone="neutral", text=text)


def _knowledge(analysis: Analysis) -> Iterator[Finding]:
    for baseline in ("zero_shot", "few_shot"):
        same = analysis.equivalent(baseline, "soft_prompt")
        difference = analysis.comparison(baseline, "soft_prompt", "knowledge")
        if same is not None and difference is not None:
            yield _equivalence(analysis, baseline, same, difference)


def _equivalence(analysis: Analysis, baseline: Method, same: Equivalence, difference: PairedDifference) -> Finding:
    zero, closed, name = baseline == "zero_shot", analysis.closed, _METHODS[baseline]
    what = "knowledge" if closed else "the share of right answers"
    tone: Tone
    if not same.rate_a and not same.rate_b:
        text = f"No answer is right, {name} or with the soft prompt (n = {same.n:,}): there is no knowledge to compare."
        return Finding(kind="knowledge", tone="neutral", text=text)
    if same.verdict == "unchanged":
        head = "is unchanged by the soft prompt" if zero else f"with the soft prompt is the same as {name}"
        within = f"within ±{same.margin * 100:g} points (n = {same.n:,})"
        text, tone = f"{what[0].upper()}{what[1:]} {head}: {_rose(same)}, {within}.", "good"
        if analysis.chance and analysis.chance.knowledge.low <= analysis.chance.chance:
            text += f" It is no better than chance ({percent(analysis.chance.chance)}): little was there to keep."
            tone = "neutral"
    elif same.verdict == "too few items to tell":
        changed = "changed" if zero else f"differs from {name}"
        needed = f": about {about(same.needed)} are needed" if same.needed else ""
        text = f"Too few items to tell whether {what} {changed} ({_rose(same)}, n = {same.n:,}){needed}."
        tone = "neutral"
    elif closed:
        head = "Knowledge changed" if zero else f"Knowledge differs from {name}"
        text = f"{head}: {_rose(same)} ({evidence(difference)}): the score with the soft prompt is not the score of "
        text, tone = text + "the same knowledge.", "bad"
    elif difference.difference > 0:
        head = "More answers are right with the soft prompt" + ("" if zero else f" than {name}")
        doubt = "either the prompt added or recalled answers, or other answers never came to the point"
        text, tone = f"{head}: {_rose(same)} ({evidence(difference)}): {doubt}. Doubt the score.", "bad"
    else:
        head = "Fewer answers are right with the soft prompt" + ("" if zero else f" than {name}")
        loss = "the score shows less than the model can answer"
        text, tone = f"{head}: {_rose(same)} ({evidence(difference)}): {loss}.", "bad"
    return Finding(kind="knowledge", tone=tone, text=text)


def _controls(analysis: Analysis) -> Iterator[Finding]:
    for control in analysis.controls:
        yield from _control_knowledge(analysis, control)
        yield from _control_format(analysis, control)


def _control_knowledge(analysis: Analysis, control: Control) -> Iterator[Finding]:
    same = analysis.equivalent(control, "soft_prompt")
    result = analysis.comparison(control, "soft_prompt", "knowledge")
    if same is None or result is None:
        return
    real = "The real prompt's knowledge" if analysis.closed else "The real prompt's share of right answers"
    other, rates = f"the {control} control", f"{percent(same.rate_b)} against {percent(same.rate_a)}"
    tone: Tone
    if same.verdict == "unchanged":
        rose = analysis.comparison("zero_shot", "soft_prompt", "format")
        form_rose = rose is not None and rose.difference > 0 and _significant(rose)
        end = "what rose is form" if form_rose else "right answers taught nothing"
        within = f"within ±{same.margin * 100:g} points, n = {same.n:,}"
        text, tone = f"{real} is not above that of {other} ({rates}, {within}): {end}.", "good"
    elif same.verdict == "too few items to tell":
        needed = f": about {about(same.needed)} items would tell" if same.needed else ""
        numbers = f"{rates}; {_interval(result)}, n = {same.n:,}"
        text, tone = f"{real} is not measurably above that of {other} ({numbers}){needed}.", "neutral"
    elif result.difference < 0:
        by = _points(-result.difference)
        text, tone = f"{real} is below that of {other} by {by} ({rates}; {evidence(result)}).", "neutral"
    else:
        text = f"{real} is above that of {other} by {_points(result.difference)} ({rates}; {evidence(result)})"
        kept = analysis.equivalent("zero_shot", "soft_prompt")
        if kept is not None and kept.verdict == "unchanged":
            within = f"unchanged from zero-shot within ±{kept.margin * 100:g} points"
            text += f", but {within}: the gap is what the control lost."
            tone = "neutral"
        elif fell := _fell(analysis, control):
            text += f", but the control fell below {fell}: wrong answers cost it some, so this alone "
            text, tone = text + "does not show that the real prompt added any.", "neutral"
        else:
            text, tone = f"{text}: it taught or recalled answers, not form alone.", "bad"
    yield Finding(kind="control", tone=tone, text=text)


def _fell(analysis: Analysis, control: Control) -> str:
    """The baseline that knew measurably more than a control, with both rates; empty where none did."""
    for baseline, name in _METHODS.items():
        result = analysis.comparison(baseline, control, "knowledge")
        if result is not None and result.difference < 0 and _significant(result):
            return f"{name} ({_rose(result)})"
    return ""


def _control_format(analysis: Analysis, control: Control) -> Iterator[Finding]:
    own = analysis.comparison("zero_shot", control, "format")
    real = analysis.comparison("zero_shot", "soft_prompt", "format")
    gap = analysis.comparison(control, "soft_prompt", "format")
    if own is None or real is None:
        return
    who, zero = f"The control that saw {_SAW[control]}", f"zero-shot: {percent(own.rate_a)}"
    if _significant(own) and own.difference > 0:
        text = f"{who} reaches format {percent(own.rate_b)} ({zero}): format needs no right answers."
        yield Finding(kind="control", tone="good", text=text)
    elif real.difference > 0 and _significant(real) and _significant(gap) and real.rate_b > own.rate_b:
        text = f"{who} does not rise in format ({percent(own.rate_b)}, {zero}) while the real prompt reaches "
        text += f"{percent(real.rate_b)}: that control did not learn the form."
        yield Finding(kind="control", tone="neutral", text=text)


def _memorised(analysis: Analysis) -> Iterator[Finding]:
    result = analysis.tuned_vs_unseen.get("knowledge")
    if result is None:
        return
    rates = f"{percent(result.rate_b)} against {percent(result.rate_a)}"
    numbers = f"({rates}; {_interval(result)}; n = {result.n_b:,} and {result.n_a:,})"
    more, less, same = "right {} more often", "right {} less often", "not measurably more often right"
    start = "Answers on the tuned questions are"
    if analysis.closed:
        start, more, less, same = (
            "Knowledge on the tuned questions is",
            "{} higher",
            "{} lower",
            "not measurably higher",
        )
    tone: Tone
    if result.low > 0:
        what, tone = more.format(_points(result.difference)), "bad"
        end = "the prompt has memorised some, unless those questions are easier"
    elif result.high < 0:
        what, tone = less.format(_points(-result.difference)), "neutral"
        end = "no sign of memorising, but those questions seem harder"
    elif result.high < MEMORISED:
        what, tone, end = same, "good", "no sign of memorising"
    else:
        what, tone, end = same, "neutral", "no sign of memorising, with too few items to rule it out"
    yield Finding(kind="memorised", tone=tone, text=f"{start} {what} than on unseen ones {numbers}: {end}.")


def _top(histogram: dict[str, int]) -> tuple[str, float]:
    letter = max(histogram, key=lambda name: histogram[name])
    return letter, histogram[letter] / max(1, sum(histogram.values()))


def _letters(analysis: Analysis) -> Iterator[Finding]:
    """Closed questions: whether the soft prompt settled on one letter, and whether its score is one of chance."""
    histogram, chance = analysis.letters.get("soft_prompt"), analysis.chance
    if histogram is None:
        return
    letter, share = _top(histogram)
    reference = analysis.letters["reference"]
    asked = reference.get(letter, 0) / max(1, sum(reference.values()))
    at_chance = chance is not None and chance.exact_match.low <= chance.chance
    score = f"{percent(chance.exact_match.rate)}, no better than chance ({percent(chance.chance)})" if chance else ""
    if letter != "other" and share >= SETTLED and asked < SETTLED:
        others = [f"reference: {percent(asked)}"]
        if zero := analysis.letters.get("zero_shot"):
            others.insert(0, f"zero-shot: {percent(zero[letter] / max(1, sum(zero.values())))}")
        text = f"{percent(share)} of soft-prompt answers begin with {letter} ({', '.join(others)}): "
        text += "the model settled on one letter" + (f"; exact match is {score}." if at_chance else ".")
        yield Finding(kind="letters", tone="bad", text=text)
    elif at_chance:
        text = f"Exact match with the soft prompt is {score}: the score shows no knowledge."
        yield Finding(kind="chance", tone="bad", text=text)


def _seeds(analysis: Analysis) -> Iterator[Finding]:
    if not analysis.seeds:
        return
    names = {"format": "format", "knowledge": "knowledge" if analysis.closed else "right answers"}
    parts = []
    for metric, spread in analysis.seeds.items():
        name = names.get(metric, "exact match")
        low, high = f"{spread.low * 100:.0f}", f"{spread.high * 100:.0f}"
        shown = low if low == high else f"{low}–{high}"
        parts.append(f"{name} {shown}\u202f% (sd {_points(spread.sd)})")
    score = analysis.seeds["exact_match"]
    wide = score.high - score.low > WIDE
    end = ": the score depends on the seed, and one seed says little." if wide else "."
    text = f"Over {score.n_seeds} seeds {', '.join(parts)}{end}"
    yield Finding(kind="seeds", tone="bad" if wide else "neutral", text=text)


def _lora(analysis: Analysis) -> Iterator[Finding]:
    """LoRA teaches the form with far more numbers: where both find the same, ten vectors were enough."""
    score = analysis.comparison(LORA, "soft_prompt", "exact_match")
    knows, same = analysis.comparison(LORA, "soft_prompt", "knowledge"), analysis.equivalent(LORA, "soft_prompt")
    if score is None or knows is None or same is None:
        return
    apart = "not measurably apart from" if not _significant(score) else "above" if score.difference > 0 else "below"
    text = f"The soft prompt's exact match is {apart} that of LoRA, tuned with the same steps on the same rows: "
    text += f"{percent(score.rate_b)} against {percent(score.rate_a)} ({evidence(score)})."
    yield Finding(kind="lora", tone="neutral", text=text)
    what = "Knowledge" if analysis.closed else "The share of right answers"
    rates = f"{percent(same.rate_b)} and {percent(same.rate_a)}"
    tone: Tone = "neutral"
    if same.verdict == "unchanged":
        within = f"within ±{same.margin * 100:g} points, n = {same.n:,}"
        text, tone = f"{what} is the same with the soft prompt and with LoRA ({rates}, {within}).", "good"
    elif same.verdict == "changed":
        more, less = ("the soft prompt", "LoRA") if knows.difference > 0 else ("LoRA", "the soft prompt")
        text = f"{what} is higher with {more} than with {less} ({_rose(knows)} from LoRA to soft prompt; "
        text += f"{evidence(knows)}): one of the two taught or cost some."
    else:
        needed = f": about {about(same.needed)} items would tell" if same.needed else ""
        text = f"{what} is not measurably different with the soft prompt and with LoRA ({rates}; {_interval(knows)}, "
        text += f"n = {same.n:,}){needed}."
    yield Finding(kind="lora", tone=tone, text=text)
