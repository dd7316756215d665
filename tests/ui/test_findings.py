"""Findings, the tests behind them, the squares and the table of rates as HTML. No browser, no model."""

from __future__ import annotations

from html import unescape

import pytest

from spt.analysis import Analysis, Cells, analyse
from spt.metrics import Agreement, JudgeInfo, JudgeScores, MethodScores, Rate
from spt.spec import TUNED_ITEMS, Method, RunSpec
from spt.ui import charts, findings, live, pictures, rates
from tests.predictions import ARMS, Rows, closed_rows, rows
from tests.ui import samples
from tests.ui.test_parts import Tags

SPEC = RunSpec(seeds=3, control=("shuffled", "valid-format"))


def answered() -> dict[Method, Rows]:
    """64 items: format from 5 to 64, right answers from 30 to 36, controls a little below."""
    return {
        "zero_shot": rows(64, 30, 5),
        "few_shot": rows(64, 33, 60),
        "soft_prompt": rows(64, 36, 64),
        "seed-1": rows(64, 34, 63),
        "seed-2": rows(64, 38, 64),
        "shuffled": rows(64, 28, 62),
        "valid-format": rows(64, 27, 61),
        TUNED_ITEMS: rows(40, 30, 40),
    }


@pytest.fixture
def analysis() -> Analysis:
    return analyse(answered(), False, ARMS)


def scored() -> dict[Method, MethodScores]:
    return {method: MethodScores.of(found, closed=False) for method, found in answered().items()}


def test_findings_stand_in_their_order_with_a_word_for_their_tone(analysis: Analysis) -> None:
    html = findings.card(analysis, 3)
    said = Tags(html).text
    places = [said.index(finding.text.split("(")[0]) for finding in analysis.findings]
    assert places == sorted(places)
    for finding in analysis.findings:
        assert f'<li class="{finding.tone}">' in html
    assert html.count('<span class="tone">') == len(analysis.findings)
    assert "doubt" in said and "supports" in said


def test_tests_carry_intervals_p_and_n(analysis: Analysis) -> None:
    html = unescape(findings.card(analysis, 3))
    real = analysis.comparison("zero_shot", "soft_prompt", "knowledge")
    same = analysis.equivalent("zero_shot", "soft_prompt")
    tuned = analysis.tuned_vs_unseen["knowledge"]
    assert real is not None and same is not None
    for found in (real, same, tuned):
        low, high = (f"{round(v * 100):+d}".replace("-", "−").replace("+0", "0") for v in (found.low, found.high))
        assert f"{low} to {high}" in html
    assert f"{real.p:.3f}" in html and 'data-title="n">64<' in html
    assert "±5" in html and same.verdict in html and "90 % interval" in html
    assert "n = 40" in html and "n = 64" in html and "Newcombe" in html
    assert html.count("Shuffled answers control") == 6  # against soft prompt and both baselines, in two tables


def test_text_of_findings_is_escaped(analysis: Analysis) -> None:
    bad = analysis.findings[0].model_copy(update={"text": samples.HOSTILE})
    seen = Tags(findings.card(analysis.model_copy(update={"findings": (bad,)}), 3))
    assert not seen.tags & {"script", "img"} and "<script>alert(1)</script>" in seen.text


def test_a_run_without_findings_has_no_card(analysis: Analysis) -> None:
    assert findings.card(analysis.model_copy(update={"findings": ()}), 3) == ""


def test_squares_have_the_counts_and_name_the_tax(analysis: Analysis) -> None:
    html = pictures.squares(analysis.cells, False, 3)
    assert html.count('<em>format tax</em>') == len(analysis.cells)
    zero = analysis.cells["zero_shot"]
    assert f"{zero.knows_out} right, not in format (the format tax)" in html
    assert html.index("Further seeds and tuned items") > html.index("Any valid answer")
    all_lost = pictures.squares({"zero_shot": Cells(knows_in=0, knows_out=9, wrong_in=0, wrong_out=0)}, True, 3)
    assert "width:100.0%" in all_lost and "ranks it first" in all_lost and "details" not in all_lost


def test_seeds_are_one_row_and_open_to_all() -> None:
    html = rates.table(scored(), SPEC)
    assert "3 seeds" in html and "mean, lowest–highest" in html and "53–59\u202f%" in html
    main, _, opened = html.partition("<details")
    assert main.count("<tr class=") == 7 and "Seed 1" not in main and "Seed 1" in opened and "Seed 2" in opened
    assert "Shuffled answers" in main and "n = 40" in main


def test_a_running_run_keeps_the_rows_of_its_arms() -> None:
    html = rates.table({"zero_shot": scored()["zero_shot"]}, SPEC)
    assert html.count("pending") == 6 and "details" not in html  # 2 methods, seeds, 2 controls, tuned items


def test_knowledge_is_the_judges_where_there_is_one() -> None:
    score = scored()["zero_shot"]
    agreement = Agreement(kappa=0.81, agree=0.9, n=63)
    said = JudgeScores(
        knowledge=Rate.of([True] * 60 + [False] * 4), in_format=score.format, exact=score.exact_match, unparsed=1,
        agreement_knowledge=agreement, agreement_format=Agreement(kappa=None, agree=None, n=0),
    )  # fmt: skip
    info = JudgeInfo(model="<b>judge", url="http://x/v1", prompt_version=1, prompt_sha256="", items=64, time=0)
    html = rates.table({"zero_shot": score.model_copy(update={"judge": said})}, RunSpec(), info)
    assert "94\u202f%" in html and "a judge model says" in html
    assert "0.81" in html and "agree on 90\u202f%, n = 63" in html and "&lt;b&gt;judge at http://x/v1" in html
    assert 'data-title="Unreadable">1<' in html and 'data-title="κ format">– ' in html


def test_letters_before_and_after_with_controls() -> None:
    answers = {"zero_shot": closed_rows(40, 10, "ABCD"), "soft_prompt": closed_rows(40, 10, "B"),
               "shuffled": closed_rows(40, 10, "C")}  # fmt: skip
    html = pictures.letters(analyse(answers, True, ARMS).letters, 3)
    assert html.count("<figure") == 4 and "100\u202f% begin with B" in html and "Shuffled answers" in html
    assert pictures.letters({}, 3) == ""


def test_further_arms_are_thin_lines_of_their_own() -> None:
    losses = [step.model_copy(update={"arms": {"seed-1": 3.0, "shuffled": 5.0}}) for step in samples.losses(9)]
    lines = {curve["name"]: curve["line"] for curve in charts.loss_figure("run", losses, 9)["data"] if "line" in curve}
    assert lines["Seed 1"]["color"] == lines["average"]["color"] == "--soft"
    assert lines["Seed 1"]["width"] < lines["average"]["width"]
    assert lines["Shuffled answers"]["color"] == "--shuffled" and lines["Shuffled answers"]["dash"]
    rate = Rate.of([True])
    arms = {"valid-format": samples.ev.ProbeScores(format=rate, knowledge=rate, exact_match=rate)}
    probes = [probe.model_copy(update={"arms": arms}) for probe in samples.probes(0, 10)]
    drawn = [c for c in charts.probe_figure("run", probes, {}, 20, 3)["data"] if c.get("name") == "Any valid answer"]
    assert [curve["y"] for curve in drawn] == [[1.0, 1.0]] * 3
    legend = live.legend_html(SPEC, None)
    assert 'class="shuffled"' in legend and "2 further seeds" in legend
    assert "seed" not in live.legend_html(RunSpec(), None)
