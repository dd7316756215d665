"""The pure parts of the page: wording, filters, figures, tables. No browser, no model."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from spt.analysis import histograms
from spt.metrics import MethodScores, Rate
from spt.spec import RunSpec, UserError
from spt.ui import answers, charts, difference, form, live, pictures, scores, text, watch
from spt.ui import rates as tables
from spt.ui.theme import ASSETS
from spt.view import RunView
from tests.ui import samples
from tests.whole import whole_run


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
    for html in (
        side_by_side(items),
        side_by_side(items, search=samples.HOSTILE),
        side_by_side(items, search=samples.HOSTILE + "nowhere"),
        difference.marked(samples.HOSTILE, "x"),
        pictures.letters(histograms(samples.predictions(closed=True)), 3),
        live.broken_html(samples.HOSTILE),
        form.problem_html(samples.HOSTILE),
        form.command_html(RunSpec(model=samples.HOSTILE)),
        text.long_text(samples.HOSTILE * 50),
    ):
        seen = Tags(html)
        assert not seen.tags & {"script", "img"}
        assert not {name for name in seen.attributes if name.startswith("on")}
    assert "<script>alert(1)</script>" in Tags(side_by_side(items)).text


def side_by_side(items: list[answers.Item], page: int = 1, search: str = "") -> str:
    choice = answers.Choice(search=search, page=page)
    return answers.side_by_side(answers.choose(items, choice), choice, 3)


def test_line_breaks_and_long_answers_survive() -> None:
    assert "one\ntwo" in text.long_text("one\ntwo")
    long = Tags(text.long_text("word " * 400))
    assert "details" in long.tags and long.text.count("word") > 400
    assert "empty answer" in text.long_text(" \n")


def test_filters_count_what_they_say() -> None:
    items = answers.join(samples.predictions(45))
    page = answers.choose(items, answers.Choice())
    # Zero-shot knows the even items, none in form; with the soft prompt all are in form; the odd ones stay wrong.
    assert page.counts == {"all": 45, "lost": 23, "changed": 45, "wrong": 22, "disputed": 0}
    assert answers.choices(items, page)[1] == ("Right but not in format · 23", "lost")


def test_pages_cover_all_items_once() -> None:
    items = answers.join(samples.predictions(45))
    pages = [answers.choose(items, answers.Choice(page=page)) for page in (1, 2, 3)]
    assert [len(page.items) for page in pages] == [20, 20, 5]
    assert {item.any.id for page in pages for item in page.items} == {f"item{i}" for i in range(45)}
    assert pages[1].where == "page 2 of 3 · 21–40 of 45"
    assert side_by_side(items, 99).count("<article") == 5  # a page that is gone: the last one


def test_search_goes_through_questions_and_answers_and_narrows_every_filter() -> None:
    items = answers.join(samples.predictions(45))
    found = answers.choose(items, answers.Choice("wrong", "QUESTION 3? rome"))
    assert found.counts == {"all": 5, "lost": 0, "changed": 5, "wrong": 5, "disputed": 0}
    assert [item.any.id for item in found.items] == ["item3", "item13", "item23", "item33", "item43"]
    assert answers.choose(items, answers.Choice(search="#### rome")).kept == 45, "an answer's text"
    assert "No item with “zebra &lt;b&gt;”" in side_by_side(items, search=" zebra <b> ")
    assert answers.choose(items, answers.Choice(search="  ")).kept == 45


def test_words_that_the_reference_does_not_have_are_marked() -> None:
    assert difference.marked("The capital of Oman is Muscat.", "#### Muscat") == (
        '<span class="differs">The capital of Oman is</span> Muscat.'
    )
    assert difference.marked("#### Muscat", "#### Muscat") == "#### Muscat"
    assert difference.marked("#### Salalah\n\nyes", "#### Muscat") == (
        '#### <span class="differs">Salalah</span>\n\n<span class="differs">yes</span>'
    )
    assert difference.marked("", "x") == "" and difference.marked(" x ", "x") == " x "
    assert difference.marked("a " * 1000, "b") == "a " * 1000, "too long to read marks in"


def test_only_new_answers_change_the_page_of_a_run_that_goes_on() -> None:
    """Its first page is full: what else is answered changes numbers and not the twenty answers, which weigh most."""
    assert side_by_side(answers.join(samples.predictions(20))) == side_by_side(answers.join(samples.predictions(45)))


def test_partial_predictions_are_shown() -> None:
    items = answers.join({"zero_shot": samples.predictions(3)["zero_shot"]})
    assert side_by_side(items).count("not yet") == 6


def test_closed_answers_tell_ranking_from_writing() -> None:
    row = side_by_side(answers.join(samples.predictions(1, closed=True)))
    assert "ranked first" in row and "exact match" in row


def test_playback_sends_an_answer_that_stays_once_and_picks_the_telling_questions() -> None:
    question = samples.ev.Question(id="item0", question="Q", target="#### Rome")
    dull = samples.ev.Question(id="other", question="Q", target="#### Rome", options=("A", "B"))
    probes = samples.probes(0, 10, 20)
    value = watch.playback("run", [question, dull], probes, 20)
    first, second = value["questions"]
    assert value["steps"] == [0, 10, 20] and value["of"] == 20
    assert [moment and moment["form"] for moment in first["moments"]] == [False, True, None]
    assert second["moments"] == [None, None, None] and second["right"] == "ranked first"
    assert watch.telling(probes, [dull, question]) == ["item0", "other"]
    assert watch.telling([], []) == []


def test_playback_of_a_run_that_goes_on_stays_light() -> None:
    """Each probe sends it again: few steps and short texts, the first and the last among them."""
    questions = [samples.ev.Question(id=f"item{i}", question="Q" * 5000, target="T" * 5000) for i in range(watch.MOST)]
    probes = []
    for probe in samples.probes(*range(200)):
        said = [probe.answers[0].model_copy(update={"id": q.id, "response": str(probe.step) * 999}) for q in questions]
        probes.append(probe.model_copy(update={"answers": tuple(said)}))
    value = watch.live_playback("run", questions, probes, 200)
    assert value["steps"][0] == 0 and value["steps"][-1] == 199 and len(value["steps"]) == watch.LIVE_MOMENTS
    assert len(json.dumps(value)) < 24_000
    whole = watch.playback("run", questions, probes, 200)
    assert len(whole["steps"]) == 200 and len(whole["questions"][0]["moments"][0]["text"]) == 999


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


def test_headline_of_few_items_boasts_of_nothing() -> None:
    few = {method: MethodScores.of(rows[:15], closed=False) for method, rows in samples.predictions(16).items()}
    found = scores.headline(few)
    assert found.startswith("15 test items are too few to tell: zero-shot scored ") and "knew" not in found
    enough = {method: MethodScores.of(rows, closed=False) for method, rows in samples.predictions(16).items()}
    assert "too few" not in scores.headline(enough)


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


def test_steps_of_saturation_are_marked_where_they_are_in_range() -> None:
    def seen(steps: int, closed: bool) -> list[tuple[str, int]]:
        layout = charts.probe_figure("run", [], {}, steps, 3, closed)["layout"]
        assert sorted({line["x0"] for line in layout["shapes"]}) == [s for _, s in charts.SATURATION if s <= steps]
        return [(label["text"], label["x"]) for label in layout["annotations"] if "hovertext" in label][::3]

    assert seen(39, closed=True) == []
    assert seen(40, closed=True) == [("<b>closed</b>", 40)]
    assert seen(80, closed=False) == [("closed", 40), ("<b>open</b>", 80)]
    assert seen(2000, closed=True) == [("<b>closed</b>", 40)], "two labels would lie on each other"
    figure = charts.probe_figure("run", [], {}, 80, 3)
    titles, labels = figure["layout"]["annotations"][:3], figure["layout"]["annotations"][3:]
    assert {title["yshift"] for title in titles} == {22} and not any("yshift" in label for label in labels)
    assert set(figure["narrow"]["annotations"]) == {"0", "1", "2"}, "on a phone the titles move"
    legend = live.legend_html(RunSpec(steps=60), None)
    assert "at step 40 (<b>closed</b>-ended), <a" in legend and "(<b>open</b>" not in legend
    assert "Upright" not in live.legend_html(RunSpec(steps=20), None)


def test_baselines_have_their_interval_as_a_band() -> None:
    found = samples.scores()
    figure = charts.probe_figure("run", samples.probes(0, 10), found, 20, 3)
    bands = [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    zero = found["zero_shot"].knowledge
    assert len(bands) == 6 and bands[2]["fillcolor"] == "--zero"
    assert (bands[2]["y0"], bands[2]["y1"]) == (round(zero.low, 3), round(zero.high, 3))
    curve = next(trace for trace in figure["data"] if trace.get("name") == "Soft prompt")
    assert "<br>Zero-shot: 0% (0%–8%)<br>3-shot: 100% (92%–100%)" in curve["hovertemplate"], "one box says all"


def test_form_says_every_field_and_its_range() -> None:
    assert set(form.FIELDS) == set(RunSpec.model_fields)
    assert form.allowed("steps") == "1 to 10,000"
    assert form.allowed("learning_rate") == "above 0, up to 10"


def test_form_and_spec_are_inverse() -> None:
    spec = RunSpec(model="org/name", steps=7, revision="main", method=("lora",), control=("shuffled",))
    assert form.to_spec(tuple(form.from_spec(spec))) == spec
    assert form.to_spec(tuple(form.from_spec(RunSpec()))) == RunSpec()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("steps", 0, "Steps = 0"), ("virtual_tokens", 10**6, "Virtual tokens"), ("learning_rate", -1, "Learning rate"),
     ("steps", 2.5, "Steps"), ("steps", None, "Steps is empty"), ("model", " ", "Model")],
)  # fmt: skip
def test_bad_settings_are_one_sentence(field: str, value: object, words: str) -> None:
    values = dict(zip(form.FIELDS, form.from_spec(RunSpec()), strict=True)) | {field: value}
    with pytest.raises(UserError, match=words) as error:
        form.to_spec(tuple(values.values()))
    assert str(error.value).count("\n") == 0


def test_lora_has_a_row_a_column_a_square_and_steps_of_its_own() -> None:
    folder = whole_run(RunSpec(benchmark="capitals-mc", items=20, steps=4, method=("lora",), control=("shuffled",)))
    result = folder.result()
    assert result is not None and result.analysis is not None
    rows = {method: folder.predictions(method) for method in folder.spec.methods}
    items = answers.join(rows)
    choice = answers.Choice()
    page = answers.choose(items, choice)
    assert answers.side_by_side(page, choice, 3).count('class="reply lora') == 20, "always beside, unlike controls"
    assert answers.side_by_side(page, choice, 3, answers.controls(items)).count('class="reply') == 5 * 20
    assert "LoRA" in pictures.squares(result.analysis.cells, True, 3)
    assert "LoRA" in pictures.letters(result.analysis.letters, 3)
    assert '<tr class="lora further">' in tables.table(result.methods, folder.spec)
    facts = scores.facts(folder.spec, None, result)
    assert "2,442,240 numbers" in facts and "LoRA trained" in facts
    view = RunView.of(folder.events(), folder.spec)
    titles = re.findall(r"<b>(.*?)</b>", live.stepper("finished", view))
    assert titles[-3:] == ["Controls", "LoRA tuning", "LoRA"]


def test_a_method_has_the_same_colour_on_the_page_and_in_the_report() -> None:
    palettes = []
    for name in ("spt.css", "report.css"):
        css = (ASSETS / name).read_text()
        tones = ("zero", "soft", "valid", "lora")
        palettes.append({tone: re.findall(rf"--{tone}: (#[0-9a-f]+);", css) for tone in tones})
        assert ".lora { --tone: var(--lora); }" in css
    assert palettes[0] == palettes[1] and all(len(colours) == 2 for colours in palettes[0].values())
