"""The sentence for each situation that an analysis can show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spt.analysis import analyse
from spt.findings import Finding, about, percent
from spt.metrics import Prediction
from tests.predictions import ARMS, Rows, closed_rows, plain, rows, said


def about_knowledge(
    n: int, before: int, after: int, closed: bool = False, start: int = 0, few: int | None = None
) -> str:
    """The sentence on knowledge, zero-shot against the soft prompt."""
    if closed:
        methods = {"zero_shot": closed_rows(n, before, "ABCD"), "soft_prompt": closed_rows(n, after, "ABCD")}
    else:
        methods = {"zero_shot": rows(n, before, 0), "soft_prompt": rows(n, after, n, start)}
    if few is not None:
        methods["few_shot"] = rows(n, few, n)
    found = said(analyse(methods, closed=closed, arms=ARMS), "knowledge")[-1]
    return f"{found.tone}: {plain(found)}"


def test_knowledge_is_unchanged() -> None:
    assert about_knowledge(512, 210, 220, closed=True) == (
        "good: Knowledge is unchanged by the soft prompt: 41 % → 43 %, within ±5 points (n = 512)."
    )
    assert about_knowledge(512, 210, 220) == (
        "good: The share of right answers is unchanged by the soft prompt: 41 % → 43 %, within ±5 points (n = 512)."
    )


def test_knowledge_that_was_never_above_chance_is_not_praised() -> None:
    assert about_knowledge(512, 128, 130, closed=True) == (
        "neutral: Knowledge is unchanged by the soft prompt: 25 % → 25 %, within ±5 points (n = 512). "
        "It is no better than chance (25 %): little was there to keep."
    )
    assert about_knowledge(64, 0, 0) == (
        "neutral: No answer is right, zero-shot or with the soft prompt (n = 64): there is no knowledge to compare."
    )


def test_too_few_items_to_tell() -> None:
    text = about_knowledge(64, 26, 36, start=20)
    assert text.startswith(
        "neutral: Too few items to tell whether the share of right answers changed (41 % → 56 %, n = "
    )
    assert text.endswith("are needed.") and ": about " in text
    assert about_knowledge(64, 26, 27, closed=True, start=5).startswith(
        "neutral: Too few items to tell whether knowledge"
    )


def test_nothing_is_good_or_bad_of_a_handful_of_items() -> None:
    def findings(n: int) -> list[Finding]:
        return analyse({"zero_shot": rows(n, n, 0), "soft_prompt": rows(n, n, n)}, closed=False, arms=ARMS).findings

    few, *others = findings(15)
    assert few.text == "15 test items are too few to tell: what follows are counts, and no evidence."
    assert others and {finding.tone for finding in others} == {"neutral"}
    assert {"good", "bad"} & {finding.tone for finding in findings(16)}
    assert findings(16)[0].kind != "few"


def test_knowledge_changed() -> None:
    assert about_knowledge(64, 32, 51, closed=True) == (
        "bad: Knowledge changed: 50 % → 80 % (difference +30 points, 95 % interval 19 to 41, p < 0.001, n = 64): "
        "the score with the soft prompt is not the score of the same knowledge."
    )
    assert about_knowledge(64, 32, 51) == (
        "bad: More answers are right with the soft prompt: 50 % → 80 % (difference +30 points, 95 % interval 19 to 41, "
        "p < 0.001, n = 64): either the prompt added or recalled answers, or other answers never came to the point. "
        "Doubt the score."
    )
    assert about_knowledge(64, 51, 32).startswith(
        "bad: Fewer answers are right with the soft prompt: 80 % → 50 % (diff"
    )
    assert "difference −30 points, 95 % interval −41 to −19" in about_knowledge(64, 51, 32)


def test_knowledge_against_few_shot() -> None:
    assert about_knowledge(512, 100, 220, few=210) == (
        "good: The share of right answers with the soft prompt is the same as few-shot: 41 % → 43 %, "
        "within ±5 points (n = 512)."
    )
    assert "differs from few-shot (41 % → 56 %" in about_knowledge(64, 0, 36, start=20, few=26)
    assert about_knowledge(64, 0, 51, few=32).startswith(
        "bad: More answers are right with the soft prompt than few-shot"
    )


@pytest.mark.parametrize(
    ("answers", "closed", "tone", "text"),
    [
        (rows(64, 27, 0), False, "bad", "27 of 64 zero-shot answers are right but not in the form."),
        (rows(64, 1, 0), False, "good", "1 of 64 zero-shot answers is right but not in the form."),
        (rows(64, 27, 64), False, "good", "none of 64 zero-shot answers is right but not in the form."),
        (rows(64, 0, 0), False, "neutral", "nothing to lose, none of 64 zero-shot answers is right in any form."),
        (closed_rows(64, 30, "A", 10), True, "bad",
         "20 of 64 zero-shot answers are out of form where the right option ranks first."),
    ],
)  # fmt: skip
def test_format_tax(answers: Rows, closed: bool, tone: str, text: str) -> None:
    (found,) = said(analyse({"zero_shot": answers}, closed=closed, arms=ARMS), "format_tax")
    assert (found.tone, plain(found)) == (tone, f"Format tax: {text}")


@pytest.mark.parametrize(
    ("before", "after", "right", "tone", "text"),
    [
        (0, 64, 9, "good", "Format following rises with the soft prompt: 0 % → 100 % (p < 0.001, n = 64)."),
        (0, 64, 0, "neutral", "Format following rises with the soft prompt: 0 % → 100 % (p < 0.001, n = 64)."),
        (10, 30, 9, "neutral", "Format following rises with the soft prompt: 16 % → 47 % (p < 0.001, n = 64)."),
        (60, 20, 9, "bad", "Format following falls with the soft prompt: 94 % → 31 % (p < 0.001, n = 64)."),
        (62, 64, 9, "good", "Format following is 100 % with the soft prompt, 97 % zero-shot: "
         "no measurable difference (p = 0.50, n = 64)."),
    ],
)  # fmt: skip
def test_format(before: int, after: int, right: int, tone: str, text: str) -> None:
    methods = {"zero_shot": rows(64, right, before), "soft_prompt": rows(64, right, after)}
    (found,) = said(analyse(methods, closed=False, arms=ARMS), "format")
    assert (found.tone, plain(found)) == (tone, text)


def controls(n: int, zero: int, soft: int, control: int, formed: int, closed: bool = False) -> list[str]:
    """The sentences on the shuffled control: right answers of each, and its answers in the form."""
    methods: dict[str, Sequence[Prediction]] = {
        "zero_shot": closed_rows(n, zero, "ABCD", 0) if closed else rows(n, zero, 0),
        "soft_prompt": closed_rows(n, soft, "ABCD") if closed else rows(n, soft, n),
        "shuffled": closed_rows(n, control, "ABCD", formed) if closed else rows(n, control, formed),
    }
    return [f"{f.tone}: {plain(f)}" for f in said(analyse(methods, closed=closed, arms=ARMS), "control")]


def test_the_real_prompt_is_above_its_control() -> None:
    knows, form = controls(200, zero=82, soft=122, control=82, formed=196, closed=True)
    assert knows == (
        "bad: The real prompt's knowledge is above that of the shuffled control by 20 points (61 % against 41 %; "
        "difference +20 points, 95 % interval 14 to 26, p < 0.001, n = 200): "
        "it taught or recalled answers, not form alone."
    )
    assert form == (
        "good: The control that saw shuffled answers reaches format 98 % (zero-shot: 0 %): "
        "format needs no right answers."
    )


def test_a_control_that_lost_knowledge_is_no_proof() -> None:
    fell, _ = controls(200, zero=100, soft=130, control=50, formed=200)
    assert fell.startswith("neutral: ") and "but the control fell below zero-shot (50 % → 25 %)" in fell
    methods = {"zero_shot": rows(200, 80, 0), "few_shot": rows(200, 120, 200), "shuffled": rows(200, 82, 200)}
    found = said(analyse({**methods, "soft_prompt": rows(200, 140, 200)}, closed=False, arms=ARMS), "control")
    assert found[0].tone == "neutral" and "but the control fell below few-shot (60 % → 41 %)" in plain(found[0])
    kept, _ = controls(200, zero=100, soft=100, control=50, formed=200)
    assert kept.startswith("neutral: ") and kept.endswith("within ±5 points: the gap is what the control lost.")


def test_the_real_prompt_is_not_above_its_control() -> None:
    same, _ = controls(512, zero=100, soft=220, control=210, formed=512)
    assert same == (
        "good: The real prompt's share of right answers is not above that of the shuffled control (43 % against 41 %, "
        "within ±5 points, n = 512): what rose is form."
    )
    unsure, _ = controls(40, zero=10, soft=14, control=10, formed=40)
    assert unsure.startswith("neutral: ") and "is not measurably above that of the shuffled control" in unsure
    assert unsure.endswith("items would tell.")
    below, _ = controls(200, zero=100, soft=60, control=120, formed=200)
    assert below.startswith(
        "neutral: The real prompt's share of right answers is below that of the shuffled control by 30"
    )


def test_a_control_that_does_not_learn_the_form() -> None:
    _, form = controls(200, zero=82, soft=84, control=82, formed=0)
    assert form == (
        "neutral: The control that saw shuffled answers does not rise in format (0 %, zero-shot: 0 %) while the real "
        "prompt reaches 100 %: that control did not learn the form."
    )
    formed = {"zero_shot": rows(64, 9, 58), "soft_prompt": rows(64, 9, 64), "shuffled": rows(64, 9, 61)}
    found = said(analyse(formed, closed=False, arms=ARMS), "control")
    assert not [f for f in found if "format" in f.text]  # in the form before and after: nothing to say


def test_each_control_is_named() -> None:
    methods = {
        name: rows(64, 20, 0 if name == "zero_shot" else 64) for name in ("zero_shot", "soft_prompt", "valid-format")
    }
    found = said(analyse(methods, closed=False, arms=ARMS), "control")
    assert [("valid-format control" in f.text, "random answers in the right form" in f.text) for f in found] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("tuned", "tone", "start", "end"),
    [
        (
            rows(64, 60, 64),
            "bad",
            "are right 44 points more often",
            "memorised some, unless those questions are easier.",
        ),
        (rows(64, 32, 64), "neutral", "are not measurably more often right", "with too few items to rule it out."),
        (rows(2000, 1000, 2000), "good", "are not measurably more often right", ": no sign of memorising."),
        (rows(64, 10, 64), "neutral", "are right 34 points less often", "those questions seem harder."),
    ],
)
def test_memorised(tuned: Rows, tone: str, start: str, end: str) -> None:
    methods = {"soft_prompt": rows(1000, 500, 1000), "tuned_items": tuned}
    (found,) = said(analyse(methods, closed=False, arms=ARMS), "memorised")
    assert found.tone == tone and found.text.endswith(end)
    assert found.text.startswith(f"Answers on the tuned questions {start}")


def test_memorised_closed_questions() -> None:
    methods = {"soft_prompt": closed_rows(200, 100, "ABCD"), "tuned_items": closed_rows(100, 90, "ABCD")}
    (found,) = said(analyse(methods, closed=True, arms=ARMS), "memorised")
    assert plain(found).startswith("Knowledge on the tuned questions is 40 points higher than on unseen ones (90 %")


def test_one_letter() -> None:
    methods = {"zero_shot": closed_rows(80, 20, "ABCD"), "soft_prompt": closed_rows(80, 20, "C" * 19 + "A")}
    (found,) = said(analyse(methods, closed=True, arms=ARMS), "letters")
    assert found.tone == "bad" and plain(found) == (
        "95 % of soft-prompt answers begin with C (zero-shot: 25 %, reference: 25 %): the model settled on one letter; "
        "exact match is 25 %, no better than chance (25 %)."
    )


def test_chance_without_a_favourite_letter() -> None:
    analysis = analyse({"soft_prompt": closed_rows(64, 16, "BCDAABCD")}, closed=True, arms=ARMS)
    assert not said(analysis, "letters") and not said(analysis, "chance")  # half right
    (found,) = said(
        analyse({"soft_prompt": closed_rows(64, 16, "BCDA" * 3 + "ABCD")}, closed=True, arms=ARMS), "chance"
    )
    assert found.tone == "bad" and plain(found) == (
        "Exact match with the soft prompt is 25 %, no better than chance (25 %): the score shows no knowledge."
    )


def test_seeds() -> None:
    names = ("soft_prompt", "seed-1", "seed-2")
    near = {name: rows(50, 27 + i, 50 - i) for i, name in enumerate(names)}
    (found,) = said(analyse(near, closed=False, arms=ARMS), "seeds")
    assert (found.tone, plain(found)) == (
        "neutral",
        "Over 3 seeds format 96–100 % (sd 2 points), right answers 54–58 % (sd 2 points), "
        "exact match 54–58 % (sd 2 points).",
    )
    far = {name: rows(50, 20 + 10 * i, 50) for i, name in enumerate(names)}
    (found,) = said(analyse(far, closed=False, arms=ARMS), "seeds")
    assert found.tone == "bad" and found.text.endswith("one seed says little.")


def test_the_order_of_findings() -> None:
    names = ["zero_shot", "few_shot", *(arm.name for arm in ARMS), "tuned_items"]
    kinds = [f.kind for f in analyse({n: closed_rows(64, 30, "C") for n in names}, closed=True, arms=ARMS).findings]
    order = ["format_tax", "format", "score", "knowledge", "control", "memorised", "letters", "seeds"]
    assert list(dict.fromkeys(kinds)) == order


def test_numbers_in_words() -> None:
    assert [about(n) for n in (7, 52, 99, 101, 113, 1234, 98765)] == ["7", "52", "99", "110", "120", "1,300", "99,000"]
    assert [percent(x) for x in (0, 0.125, 0.625, 1)] == ["0\u202f%", "12\u202f%", "62\u202f%", "100\u202f%"]


def about_lora(lora: Rows, soft: Rows, closed: bool = False) -> list[str]:
    found = said(analyse({"lora": lora, "soft_prompt": soft}, closed=closed, arms=ARMS), "lora")
    return [f"{finding.tone}: {plain(finding)}" for finding in found]


def test_lora_beside_the_soft_prompt() -> None:
    score, knowledge = about_lora(rows(512, 210, 512), rows(512, 212, 512))
    assert score.startswith(
        "neutral: The soft prompt's exact match is not measurably apart from that of LoRA, tuned with the same steps "
        "on the same rows: 41 % against 41 % (difference 0 points, 95 % interval "
    )
    assert knowledge == (
        "good: The share of right answers is the same with the soft prompt and with LoRA (41 % and 41 %, within "
        "±5 points, n = 512)."
    )
    score, knowledge = about_lora(rows(512, 300, 512), rows(512, 210, 512))
    assert "exact match is below that of LoRA" in score and "41 % against 59 % (difference −18 points" in score
    assert knowledge.startswith(
        "neutral: The share of right answers is higher with LoRA than with the soft prompt (59 % → 41 % from LoRA to "
        "soft prompt; difference −18 points"
    )
    score, knowledge = about_lora(closed_rows(64, 20, "ABCD"), closed_rows(64, 24, "ABCD"), closed=True)
    assert knowledge.startswith("neutral: Knowledge is not measurably different with the soft prompt and with LoRA")
    assert "items would tell" in knowledge
    score, _ = about_lora(rows(512, 210, 200), rows(512, 210, 512))
    assert "exact match is above that of LoRA" in score
    assert not said(analyse({"soft_prompt": rows(512, 9, 9)}, closed=False, arms=ARMS), "lora")
