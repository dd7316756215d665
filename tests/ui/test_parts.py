"""The pure parts of the page: wording, filters, figures, tables. No browser, no model."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from spt.analysis import histograms
from spt.metrics import MethodScores, Rate
from spt.spec import RunSpec, UserError
from spt.ui import answers, charts, form, live, pictures, scores, text
from spt.ui import rates as tables
from tests.ui import samples


class Tags(HTMLParser):
    """Collects tag names, attribute names and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def rates(format_: float, knowledge: float, exact: float) -> MethodScores:
    def rate(share: float) -> Rate:
        return Rate(rate=share, low=max(0, share - 0.1), high=min(1, share + 0.1), n=100)

    return MethodScores(
        format=rate(format_), knowledge=rate(knowledge), exact_match=rate(exact), knowledge_by="rule", stopped_by={}
    )


@pytest.mark.parametrize("closed", [False, True])
def test_hostile_text_stays_text(closed: bool) -> None:
    items = answers.join(samples.predictions(closed=closed))
    (probe,) = samples.probes(0)
    bad = samples.HOSTILE
    question = samples.ev.Question(id="item0", question=bad, options=(bad,), target=bad)
    for html in (
        answers.side_by_side(items, "all", 1, 3),
        answers.timeline(question, [probe]),
        pictures.letters(histograms(samples.predictions(closed=True)), 3),
        live.broken_html(samples.HOSTILE),
        form.problem_html(samples.HOSTILE),
        form.command_html(RunSpec(model=samples.HOSTILE)),
        text.long_text(samples.HOSTILE * 50),
    ):
        seen = Tags(html)
        assert not seen.tags & {"script", "img"}
        assert not {name for name in seen.attributes if name.startswith("on")}
    assert "<script>alert(1)</script>" in Tags(answers.side_by_side(items, "all", 1, 3)).text


def test_line_breaks_and_long_answers_survive() -> None:
    assert "one\ntwo" in text.long_text("one\ntwo")
    long = Tags(text.long_text("word " * 400))
    assert "details" in long.tags and long.text.count("word") > 400
    assert "empty answer" in text.long_text(" \n")


def test_filters_count_what_they_say() -> None:
    items = answers.join(samples.predictions(45))
    kept = {name: sum(map(each.keep, items)) for name, each in answers.FILTERS.items()}
    # Zero-shot knows the even items, none in form; with the soft prompt all are in form; the odd ones stay wrong.
    assert kept == {"all": 45, "lost": 23, "changed": 45, "wrong": 22, "disputed": 0}
    assert answers.choices(items)[1] == ("Right but not in format · 23", "lost")


def test_pages_cover_all_items_once() -> None:
    items = answers.join(samples.predictions(45))
    shown = [answers.side_by_side(items, "all", page, 3).count("<article") for page in (1, 2, 3)]
    assert shown == [20, 20, 5] and answers.pages(items, "all") == 3
    assert answers.side_by_side(items, "all", 99, 3).count("<article") == 5  # a page that is gone: the last one


def test_partial_predictions_are_shown() -> None:
    items = answers.join({"zero_shot": samples.predictions(3)["zero_shot"]})
    assert answers.side_by_side(items, "all", 1, 3).count("not yet") == 6


def test_closed_answers_tell_ranking_from_writing() -> None:
    row = answers.side_by_side(answers.join(samples.predictions(1, closed=True)), "all", 1, 3)
    assert "ranked first" in row and "exact match" in row


def test_timeline_marks_repeats_and_picks_the_telling_question() -> None:
    question = samples.ev.Question(id="item0", question="Q", target="#### Rome")
    dull = samples.ev.Question(id="other", question="Q", target="#### Rome")
    html = answers.timeline(question, samples.probes(0, 10, 20))
    assert html.count('class="moment') == 3 and html.count(" same") == 1
    assert answers.interesting(samples.probes(0, 10, 20), [dull, question]) == "item0"
    assert answers.interesting([], []) is None


@pytest.mark.parametrize(
    ("zero", "soft", "words"),
    [
        (rates(0, 0.62, 0), None, "Zero-shot scored 0\u202f% but knew 62\u202f%: format cost 62 points."),
        (rates(0.9, 0.6, 0.6), None, "Zero-shot scored 60\u202f% and knew 60\u202f%: format cost almost nothing."),
        (rates(0.9, 0.3, 0.5), None, "more than the 30\u202f% it ranked right"),
        (rates(0, 0.62, 0), rates(0.95, 0.67, 0.66), "95\u202f% of answers are in format and the score is 66\u202f%."),
        (rates(0, 0.1, 0), rates(1, 0.5, 0.5), "Right answers, in any form, rose from 10\u202f% to 50\u202f%."),
        (rates(0, 0.62, 0), rates(0.5, 0.6, 0.3), "the score is 30\u202f%, 30 points below what it knows."),
    ],
)
def test_headline(zero: MethodScores, soft: MethodScores | None, words: str) -> None:
    assert words in scores.headline({"zero_shot": zero} | ({"soft_prompt": soft} if soft else {}))


def test_headline_blames_no_format_where_examples_show_more_knowledge() -> None:
    found = scores.headline({"zero_shot": rates(0, 0, 0), "few_shot": rates(1, 0.7, 0.7)})
    assert "with examples the same model knew 70" in found and "almost nothing" not in found


def test_headline_of_answers_that_are_neither() -> None:
    found = scores.headline({"zero_shot": rates(0, 0, 0)})
    assert found == "Zero-shot scored 0\u202f%: its answers were neither in format nor right."
    assert "almost nothing" not in scores.headline({"zero_shot": rates(0, 0, 0), "few_shot": rates(1, 0, 0)})


def test_one_is_singular() -> None:
    html = tables.table({"zero_shot": rates(0, 0.01, 0), "few_shot": rates(0, 0, 0.01)}, RunSpec())
    assert html.count("<small>point</small>") == 2


def test_no_headline_before_the_first_score() -> None:
    assert scores.headline({}) == ""


def test_table_keeps_a_row_for_what_is_still_to_come() -> None:
    html = tables.table({"zero_shot": rates(0, 0.62, 0)}, RunSpec())
    assert html.count("<tr") == 4 and html.count("pending") == 2 and "3-shot" in html and "by rule" in html


def test_letters_say_when_a_model_settles_on_one() -> None:
    html = pictures.letters(histograms(samples.predictions(closed=True)), 3)
    assert "100\u202f% begin with C" in html and "Reference" in html


def test_loss_figure_is_thinned_but_ends_where_the_run_is() -> None:
    figure = charts.loss_figure("run", samples.losses(5000), 10_000)
    x = figure["data"][0]["x"]
    assert len(x) <= charts.MAX_POINTS + 1 and x[0] == 1 and x[-1] == 5000
    assert figure["layout"]["uirevision"] == "run" and figure["layout"]["xaxis"]["range"] == [0, 10_000]


def test_smoothing_has_no_start_up_bias() -> None:
    assert charts.smooth([2.0, 2.0, 2.0]) == pytest.approx([2.0, 2.0, 2.0])


def test_probe_figure_has_bands_levels_and_one_colour_a_method() -> None:
    figure = charts.probe_figure("run", samples.probes(0, 10), samples.scores(), 20, 3)
    data = figure["data"]
    assert [d["name"] for d in data if d.get("line", {}).get("dash")] == ["Zero-shot", "3-shot"] * 3
    curves = [d for d in data if "marker" in d]
    assert len(curves) == 3 and {d["line"]["color"] for d in curves} == {"--soft"}
    band = next(d for d in data if d.get("fill"))
    assert band["x"] == [0, 10, 10, 0] and len(band["y"]) == 4
    assert charts.probe_figure("run", [], {}, 20, 3)["data"] == []


def test_form_says_every_field_and_its_range() -> None:
    assert set(form.FIELDS) == set(RunSpec.model_fields)
    assert form.allowed("steps") == "1 to 10,000"
    assert form.allowed("learning_rate") == "above 0, up to 10"


def test_form_and_spec_are_inverse() -> None:
    spec = RunSpec(model="org/name", steps=7, revision="main")
    assert form.to_spec(tuple(form.from_spec(spec))) == spec
    assert form.to_spec(tuple(form.from_spec(RunSpec()))) == RunSpec()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("steps", 0, "steps = 0"), ("virtual_tokens", 10**6, "virtual_tokens"), ("learning_rate", -1, "learning_rate"),
     ("steps", 2.5, "steps"), ("steps", None, "Steps is empty"), ("model", " ", "model")],
)  # fmt: skip
def test_bad_settings_are_one_sentence(field: str, value: object, words: str) -> None:
    values = dict(zip(form.FIELDS, form.from_spec(RunSpec()), strict=True)) | {field: value}
    with pytest.raises(UserError, match=words) as error:
        form.to_spec(tuple(values.values()))
    assert str(error.value).count("\n") == 0
