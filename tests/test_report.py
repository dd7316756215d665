"""The report of a run: everything is in one file, text stays text, and a browser without a network shows it."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from spt.benchmarks.base import Example
from spt.metrics import Rate
from spt.report import MOST_ITEMS, clip, html_report
from spt.report_charts import range_bar, reach, ticks
from spt.spec import RunSpec, UserError
from spt.store import Store
from tests.finished import finished_run
from tests.whole import plainly, whole_run

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
EVERYTHING = RunSpec(items=8, steps=4, probe_every=2, seeds=3, control=("shuffled", "valid-format"))
VOID = {"meta", "path", "circle", "rect", "br"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; fails where tags are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.open = "", []  # type: ignore[var-annotated]
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def headings(html: str) -> list[str]:
    return [re.sub(r"<[^>]*>", "", text) for text in re.findall(r"<h2>(.*?)</h2>", html)]


def test_lora_stands_beside_the_others() -> None:
    html = html_report(whole_run(EVERYTHING.model_copy(update={"method": ("lora",)})))
    page = Page(html)
    assert "2,442,240 trained numbers" in page.text and "LoRA → Soft prompt" in page.text
    assert html.count('class="reply lora') == 8 and "--columns:4" in html
    assert "that of LoRA" in page.text and '<tr class="lora further">' in html


def test_a_run_with_everything_shows_everything() -> None:
    folder = whole_run(EVERYTHING, judged=True)
    html = html_report(folder)
    assert headings(html) == [
        "Findings", "Scores", "What the judge said", "While the prompt was tuned", "Right × in the form",
        "Is the knowledge the same?", "Paired tests", "Over 3 seeds", "Tuned against unseen items",
        "What it was made with", "Answers side by side",
    ]  # fmt: skip
    page = Page(html)
    result = folder.result()
    assert result is not None and result.analysis is not None
    text = " ".join(page.text.split())
    assert all(" ".join(finding.text.split()) in text for finding in result.analysis.findings)
    assert folder.spec.command() in text and "Control: shuffled" in text and "judge/model" in text
    assert html.count("no verdict of the judge") == 3 and html.count("not right by the judge") == 9
    assert html.count('class="chart"') == 4 and html.count("<article>") == 8
    assert [level for level in re.findall(r"<h([1-4])", html)][:3] == ["1", "2", "2"]


@pytest.mark.parametrize(
    ("spec", "has", "lacks"),
    [
        (RunSpec(items=8, steps=4, probe_every=0), "Loss", "followed item"),
        (RunSpec(benchmark="capitals-mc", items=8, steps=4, probe_every=2), "First letter", "Tuned against unseen"),
        (
            RunSpec(benchmark="capitals-mc", items=8, steps=4, control=("shuffled",)),
            "Tuned against unseen",
            "seeds</h2>",
        ),
    ],
    ids=["no-probes", "closed", "closed-control"],
)
def test_other_runs_show_what_they_have(spec: RunSpec, has: str, lacks: str) -> None:
    html = html_report(whole_run(spec))
    Page(html)
    assert has in html and lacks not in html and "What the judge said" not in html


def test_a_run_without_curves_or_analysis_has_a_report_too() -> None:
    folder = finished_run(RunSpec(items=4), plainly)
    assert "While the prompt" not in html_report(folder)
    result = folder.result()
    assert result is not None
    old = result.model_copy(update={"analysis": None})
    (folder.path / "result.json").write_text(old.model_dump_json(by_alias=True))
    assert "Paired tests" in html_report(folder)


def test_text_of_questions_and_answers_is_text() -> None:
    evil = '<script>alert("x")</script><img src=http://evil.example/a.png onerror=alert(1)>{{ 7 * 7 }}</style>'

    def respond(method: str, number: int, item: Example) -> str:
        return f"{evil} {plainly(method, number, item)}"

    folder = whole_run(EVERYTHING, respond)
    for method in EVERYTHING.methods:
        rows = [row.model_copy(update={"question": evil, "topic": evil}) for row in folder.predictions(method)]
        folder.write_predictions(method, rows)
    page = Page(html_report(folder))
    assert evil in page.text
    assert not {tag for tag, _ in page.tags} & {"script", "img", "link", "iframe", "object", "a", "base"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "xlink:href")]


def test_nothing_is_fetched_and_images_have_words() -> None:
    html = html_report(whole_run(EVERYTHING, judged=True))
    assert "http" not in re.sub("http-equiv", "", html) and "url(" not in html and "@import" not in html
    images = [attributes for tag, attributes in Page(html).tags if tag == "svg"]
    assert images and all(each.get("aria-label") or each.get("aria-hidden") == "true" for each in images)
    assert all(attributes.get("scope") for tag, attributes in Page(html).tags if tag == "th")


def test_long_texts_and_many_items_are_cut_and_counted() -> None:
    long = RunSpec(benchmark="arithmetic", items=MOST_ITEMS + 5, steps=4)
    html = html_report(whole_run(long, lambda method, i, item: "word " * 1000))
    assert html.count("<article>") == MOST_ITEMS
    assert "The first 200 of 205 items; the other 5 are in the ZIP" in html and "4,300 more characters" in html
    assert clip("x" * 100, 90) == ("x" * 100, 0) and clip("x" * 200, 90) == ("x" * 90, 110)


def test_sixty_four_items_stay_small() -> None:
    spec = RunSpec(items=64, seeds=3, control=("shuffled", "valid-format"))
    html = html_report(whole_run(spec, lambda method, i, item: "It is a long story, and I will tell it. " * 6))
    assert len(html.encode()) < 400_000


def test_an_unfinished_run_has_no_report() -> None:
    with pytest.raises(UserError, match="is not finished"):
        html_report(Store().create(RunSpec(seed=9)))


def test_pieces_of_charts() -> None:
    assert ticks(80) == [0, 20, 40, 60, 80] and ticks(5) == [0, 1, 2, 3, 4, 5] and ticks(0) == [0, 1]
    assert ticks(1)[-1] == 1 and ticks(0.37)[-1] >= 0.37 and ticks(10_000)[-1] == 10_000
    assert reach([]) == 0.15 and reach([-0.6, 0.2]) == 0.6
    assert 'd="M50.0 1L50.0 11"' in range_bar(Rate(rate=0.5, low=0.4, high=0.6, n=10))


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome is installed")
@pytest.mark.parametrize("benchmark", ["capitals", "capitals-mc"])
def test_it_opens_in_a_browser_without_a_network(benchmark: str, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    file = tmp_path / "report.html"
    file.write_text(html_report(whole_run(EVERYTHING.model_copy(update={"benchmark": benchmark}), judged=True)))
    noise: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width, scheme in ((1200, "light"), (390, "dark")):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
            page = context.new_page()
            page.on("console", lambda message: noise.append(message.text))
            page.on("pageerror", lambda error: noise.append(str(error)))
            page.on("request", lambda request: noise.append(request.url))
            page.goto(file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("svg.chart").first.bounding_box()["height"] > 100
            assert page.locator("h2").first.is_visible()
        browser.close()
    assert noise == [file.as_uri()] * 2, "no other request, no error"
