"""What a run shows, in the sentences of `spt.findings`, and the tests behind them as tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spt.analysis import Analysis
from spt.findings import Finding, Tone, about, percent
from spt.spec import Method
from spt.stats import Equivalence, PairedDifference, UnpairedDifference
from spt.ui.text import CONTROLS, METRICS, between, colour, esc, method_title, p_value, signed

# What a tone means for reading the score, as sign and word: colour only repeats it.
TONES: dict[Tone, tuple[str, str]] = {"good": ("●", "supports"), "bad": ("▲", "doubt"), "neutral": ("–", "note")}
_EVIDENCE = re.compile(r"\([^()]*\d[^()]*\)")


def card(analysis: Analysis, shots: int) -> str:
    """Findings in their order, and the folded tests."""
    if not analysis.findings:
        return ""
    items = "".join(map(_finding, analysis.findings))
    tests = "".join((_comparisons(analysis, shots), _equivalences(analysis, shots), _tuned(analysis)))
    fold = f'<details class="fold"><summary>The tests behind it</summary>{tests}</details>' if tests else ""
    return (
        f'<section class="card findings"><h3>What this run shows</h3><ul>{items}</ul>{_key(analysis.findings)}{fold}'
        "</section>"
    )


def _finding(finding: Finding) -> str:
    sign, word = TONES[finding.tone]
    # The numbers stand in brackets: they may be passed over in reading, so they are set quieter.
    text = _EVIDENCE.sub(_evidence, esc(finding.text))
    return (
        f'<li class="{finding.tone}"><span class="tone"><i aria-hidden="true">{sign}</i>{word}</span>'
        f"<p>{text}</p></li>"
    )


def _evidence(found: re.Match[str]) -> str:
    joined = re.sub(r" (=|&lt;) ", "\u00a0\\1\u00a0", found.group())  # no line ends within `p = 0.02`
    return f'<span class="evidence">{joined}</span>'


def _key(findings: Sequence[Finding]) -> str:
    meant = {
        "good": "supports reading the score as knowledge",
        "bad": "gives a reason to doubt it",
    }
    tones: list[Tone] = ["good", "bad"]
    present = [f"{TONES[tone][0]} {meant[tone]}" for tone in tones if any(each.tone == tone for each in findings)]
    return f'<p class="note">{"; ".join(present)}.</p>' if present else ""


def _who(method: Method, shots: int) -> str:
    control = " control" if method in CONTROLS else ""
    return f'<i class="swatch {colour(method)}"></i>{esc(method_title(method, shots))}{control}'


def _pair(a: Method, b: Method, shots: int, rows: int = 1) -> str:
    span = f' rowspan="{rows}"' if rows > 1 else ""
    return f'<th scope="row"{span}>{_who(a, shots)}<br><span class="to">→</span> {_who(b, shots)}</th>'


def _table(title: str, note: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    return (
        f'<h4>{title}</h4><p class="note">{note}</p><div class="scroll"><table class="tests">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _rates(result: PairedDifference | Equivalence) -> str:
    return f'<td data-title="From → to">{percent(result.rate_a)} → {percent(result.rate_b)}</td>'


def _difference(result: PairedDifference | Equivalence | UnpairedDifference, picture: str = "") -> str:
    return (
        f'<td data-title="Difference"><b>{signed(result.difference)}</b> '
        f"<small>{between(result.low, result.high)}</small>{picture}</td>"
    )


def _comparisons(analysis: Analysis, shots: int) -> str:
    rows, before = [], None
    for each in analysis.comparisons:
        result, pair = each.result, (each.a, each.b)
        first = pair != before
        same = sum((other.a, other.b) == pair for other in analysis.comparisons)
        before = pair
        rows.append(
            f"<tr{' class=first' if first else ''}>{_pair(*pair, shots, same) if first else ''}"
            f'<td class="what">{METRICS[each.metric]}</td>{_rates(result)}{_difference(result)}'
            f'<td data-title="McNemar p">{p_value(result.p)}</td><td data-title="n">{result.n:,}</td></tr>'
        )
    if not rows:
        return ""
    note = (
        "On the same items. Difference in points with a 95 % bootstrap interval; p of McNemar’s exact test, not "
        "corrected for the number of comparisons."
    )
    heads = ("Compared", "Rate", "From → to", "Difference, 95 % interval", "McNemar p", "n")
    return _table("Paired comparisons", note, heads, rows)


def _strip(result: Equivalence) -> str:
    """The interval against the margin, around zero in the middle."""
    widest = 1.1 * max(abs(result.low), abs(result.high), result.margin)

    def at(value: float) -> float:
        return 50 + 50 * value / widest

    margin, low, high = at(-result.margin), at(result.low), at(result.high)
    return (
        '<span class="strip" aria-hidden="true">'
        f'<i class="margin" style="left:{margin:.1f}%;width:{100 - 2 * margin:.1f}%"></i>'
        f'<i class="zero-line"></i><i class="span" style="left:{low:.1f}%;width:{max(high - low, 0.5):.1f}%"></i>'
        f'<i class="dot" style="left:{at(result.difference):.1f}%"></i></span>'
    )


def _equivalences(analysis: Analysis, shots: int) -> str:
    rows = []
    for each in analysis.equivalence:
        result = each.result
        needed = f", about {about(result.needed)} needed" if result.needed else ""
        rows.append(
            f"<tr class=first>{_pair(each.a, each.b, shots)}"
            f"{_rates(result)}{_difference(result, _strip(result))}"
            f'<td data-title="Margin">±{result.margin * 100:g}</td>'
            f'<td data-title="Verdict"><b>{esc(result.verdict)}</b><small>{needed}</small></td>'
            f'<td data-title="n">{result.n:,}</td></tr>'
        )
    if not rows:
        return ""
    note = (
        "Two one-sided score tests (Tango). <i>Unchanged</i>: the 90 % interval lies within the margin, the shaded "
        "band. <i>Changed</i>: McNemar’s p is below 0.05. Otherwise there are too few items to tell."
    )
    heads = ("Compared", "From → to", "Difference, 90 % interval", "Margin", "Verdict", "n")
    return _table("Is knowledge the same?", note, heads, rows)


def _tuned(analysis: Analysis) -> str:
    rows = [
        f'<tr class=first><th scope="row">{METRICS[metric]}</th>'
        f'<td data-title="Unseen">{percent(result.rate_a)} <small>n = {result.n_a:,}</small></td>'
        f'<td data-title="Tuned">{percent(result.rate_b)} <small>n = {result.n_b:,}</small></td>'
        f"{_difference(result)}</tr>"
        for metric, result in analysis.tuned_vs_unseen.items()
    ]
    if not rows:
        return ""
    note = (
        "The soft prompt on rows that it was tuned on, against test items: a prompt that memorised would do better on "
        "the former. Difference in points with Newcombe’s 95 % interval."
    )
    return _table("Tuned against unseen", note, ("Rate", "Unseen", "Tuned", "Difference, 95 % interval"), rows)
