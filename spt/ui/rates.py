"""The table of rates: a row for each method, then the further seeds, controls and tuned items where a run has them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from spt.findings import percent
from spt.metrics import Agreement, JudgeInfo, MethodScores, Rate
from spt.spec import METHODS, TUNED_ITEMS, Method, RunSpec
from spt.ui.text import METRICS, colour, esc, interval, method_note, method_title, points
from spt.view import count

BY = {
    "likelihood": "the option of highest likelihood is the right one",
    "rule": "the right answer occurs in the text, by rule",
    "judge": "a judge model says that the text is right; exact match and format stay those of the rule",
}


def tax(scores: MethodScores) -> float:
    """Knowledge as it is shown, by the judge where there was one, minus exact match."""
    return scores.shown.knowledge.rate - scores.shown.exact_match.rate


def bar(low: float, high: float, at: float) -> str:
    """An interval and a value drawn to scale, from 0 to 1."""
    return (
        '<span class="range" aria-hidden="true">'
        f'<i class="band" style="left:{low * 100:.1f}%;width:{(high - low) * 100:.1f}%"></i>'
        f'<i class="dot" style="left:{at * 100:.1f}%"></i></span>'
    )


def _rate_cell(rate: Rate, title: str) -> str:
    """Number, interval drawn to scale, interval written out."""
    return (
        f'<td data-title="{esc(title)}"><b>{percent(rate.rate)}</b>{bar(rate.low, rate.high, rate.rate)}'
        f"<small>{interval(rate)}</small></td>"
    )


def _tax_cell(difference: float) -> str:
    unit = "point" if points(difference) in ("1", "−1") else "points"
    return f'<td data-title="Format tax"><b>{points(difference)}</b> <small>{unit}</small></td>'


def _name(tone: str, title: str, note: str = "") -> str:
    small = f"<small>{esc(note)}</small>" if note else ""
    return f'<th scope="row"><i class="swatch {tone}"></i>{esc(title)}{small}</th>'


def _row(method: Method, score: MethodScores | None, shots: int) -> str:
    tone, note = colour(method), method_note(method)
    further = "" if method in METHODS else " further"
    if method == TUNED_ITEMS and score is not None:
        note += f", n = {score.format.n:,}"  # others than the test items
    name = _name(tone, method_title(method, shots), note)
    if score is None:
        return f'<tr class="{tone} pending{further}">{name}' + "<td>–</td>" * 4 + "</tr>"
    cells = "".join(_rate_cell(getattr(score.shown, key), title) for key, title in METRICS.items())
    return f'<tr class="{tone}{further}">{name}{cells}{_tax_cell(tax(score))}</tr>'


def _seeds_row(scores: Mapping[Method, MethodScores], seeds: tuple[Method, ...], complete: bool) -> str:
    """All seeds in one row: the mean, and the lowest and highest, which is no confidence interval."""
    name = _name("seed", f"{len(seeds)} seeds", "soft prompt: mean, lowest–highest")
    if not complete:
        return f'<tr class="seed pending further">{name}' + "<td>–</td>" * 4 + "</tr>"
    cells = []
    for metric, title in METRICS.items():
        rates = [getattr(scores[seed].shown, metric).rate for seed in seeds]
        low, high, mean = min(rates), max(rates), fmean(rates)
        cells.append(
            f'<td data-title="{esc(title)}"><b>{percent(mean)}</b>{bar(low, high, mean)}'
            f"<small>{low * 100:.0f}–{high * 100:.0f}\u202f%</small></td>"
        )
    cells.append(_tax_cell(fmean(tax(scores[seed]) for seed in seeds)))
    return f'<tr class="seed further">{name}{"".join(cells)}</tr>'


def table(scores: Mapping[Method, MethodScores], spec: RunSpec, judge: JudgeInfo | None = None) -> str:
    """Rows are methods, columns metrics. Methods that are not scored yet stay as empty rows, so nothing jumps."""
    seeds = ("soft_prompt", *(arm.name for arm in spec.arms[1:] if arm.control is None))
    all_seeds = len(seeds) > 1 and all(seed in scores for seed in seeds)
    rows = [_row(method, scores.get(method), spec.shots) for method in METHODS]
    if len(seeds) > 1:
        rows.append(_seeds_row(scores, seeds, all_seeds))
    others = [method for method in spec.methods if method not in METHODS and method not in seeds]
    rows += [_row(method, scores.get(method), spec.shots) for method in others]
    heads = "".join(f'<th scope="col">{title}</th>' for title in (*METRICS.values(), "Format tax"))
    head = f"<thead><tr><td></td>{heads}</tr></thead>"
    each = ""
    if all_seeds:
        opened = "".join(_row(seed, scores[seed], spec.shots) for seed in seeds[1:])
        each = (
            f'<details class="fold"><summary>{count(len(seeds) - 1, "further seed")}, with intervals</summary>'
            f"<table>{head}<tbody>{opened}</tbody></table></details>"
        )
    body = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>{each}"
    notes = ""
    if scores:
        first = next(iter(scores.values()))
        notes = (
            f"{count(first.format.n, 'test item')}, 95 % Wilson intervals. "
            f"Knowledge: {BY[first.shown.knowledge_by]}. Exact match: right and in format. "
            "Format tax: knowledge − exact match."
        )
    return f'<div class="card scores">{body}<p class="note">{notes}</p></div>{judged(scores, judge, spec.shots)}'


def _kappa(title: str, found: Agreement) -> str:
    kappa = "–" if found.kappa is None else f"{found.kappa:.2f}".replace("-", "−")
    agree = "–" if found.agree is None else percent(found.agree)
    return f'<td data-title="{title}">{kappa} <small>agree on {agree}, n = {found.n:,}</small></td>'


def judged(scores: Mapping[Method, MethodScores], judge: JudgeInfo | None, shots: int) -> str:
    """Who judged, how far it agrees with the rule, and how many replies were no verdict; empty without a judge."""
    if judge is None:
        return ""
    rows = []
    for method, score in scores.items():
        said = score.judge
        if said is None:
            continue
        kappas = _kappa("κ knowledge", said.agreement_knowledge) + _kappa("κ format", said.agreement_format)
        rows.append(
            f"<tr class=first>{_name(colour(method), method_title(method, shots))}"
            f'<td data-title="Knows, by rule">{percent(score.knowledge.rate)}</td>'
            f'<td data-title="Knows, by judge">{percent(said.knowledge.rate)}</td>'
            f'{kappas}<td data-title="Unreadable">{said.unparsed:,}</td></tr>'
        )
    where = f" at {judge.url}" if judge.url else ""
    titles = ("Knows, by rule", "Knows, by judge", "κ knowledge", "κ format", "Unreadable")
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    return (
        '<section class="card judged"><h3>Judge and rule</h3>'
        f'<p class="note">{esc(judge.model)}{esc(where)} judged {count(judge.items, "answer")} (prompt version '
        f"{judge.prompt_version}). κ is Cohen’s kappa of rule and judge: 1 is full agreement, 0 that of chance. Where "
        "a reply was no readable verdict the rule’s stands.</p>"
        f'<div class="scroll"><table class="tests"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )
