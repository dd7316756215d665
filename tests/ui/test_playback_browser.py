"""In a real browser: charts updated in place, playback and search; and updates that are small and leave no trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spt.store import Store
from tests.ui import samples
from tests.ui.growing import Growing, growing
from tests.ui.test_browser import browser, opened, pytestmark, server  # noqa: F401  (fixtures, and the mark)

LOSS, PROBE = "#loss-chart .plot", "#probe-chart .plot"
UPDATE = 20_000  # bytes: the most that one update of a page that looks at a live run may be


@pytest.fixture
def run(spt_home: object) -> Iterator[Growing]:
    with growing(Store(), 400) as run:
        yield run


def last_step(page: Any, run: Growing) -> None:
    """Wait until the page shows the last step."""
    page.wait_for_function(f"() => document.querySelector('{LOSS}')?.data?.[0]?.x.at(-1) === {run.step}")


def cursors(page: Any) -> list[float]:
    """Where the playback's line stands, in every panel of both charts."""
    return page.evaluate(
        """() => [...document.querySelectorAll('#charts .plot')].flatMap((plot) =>
           (plot.layout.shapes || []).filter((s) => s.line.width === 2.5).map((s) => s.x0))"""
    )


def heap(session: Any) -> tuple[float, float]:
    """Megabytes of live objects, and nodes of the document."""
    session.send("HeapProfiler.collectGarbage")
    found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return found["JSHeapUsedSize"] / 1e6, found["Nodes"]


def test_zoom_and_hover_stay_over_updates_that_are_small_and_leave_nothing(
    server: str, browser: Any, run: Growing  # noqa: F811
) -> None:
    run.steps(25)
    page, wrong = opened(browser, f"{server}/?run={run.folder.id}")
    last_step(page, run)
    page.locator(LOSS).scroll_into_view_if_needed()
    area = page.locator(f"{LOSS} .nsewdrag").bounding_box()
    middle = area["y"] + area["height"] / 2
    page.mouse.move(area["x"] + area["width"] * 0.1, middle)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.3, middle, steps=5)
    page.mouse.up()
    zoomed = f"() => document.querySelector('{LOSS}')._fullLayout.xaxis.range"
    page.wait_for_function(f"({zoomed})()[1] < 200")
    chosen = page.evaluate(zoomed)
    page.evaluate(f"() => {{ for (const s of ['{LOSS}', '{PROBE}']) document.querySelector(s).dataset.mine = 'yes' }}")
    page.locator(PROBE).scroll_into_view_if_needed()
    area = page.locator(f"{PROBE} .nsewdrag").first.bounding_box()
    page.mouse.move(area["x"] + area["width"] / 30, area["y"] + area["height"] / 2)
    page.wait_for_selector(f"{PROBE} .hoverlayer .legend")

    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("Network.enable")
    received = [0]
    session.on("Network.dataReceived", lambda event: received.append(event["dataLength"]))
    sizes: list[int] = []
    before = (0.0, 0.0)
    for update in range(24):
        if update == 8:
            before = heap(session)
        received.clear()
        run.steps(5)
        last_step(page, run)
        page.wait_for_timeout(50)
        sizes.append(sum(received))
    assert page.locator(f"{PROBE} .hoverlayer .legend").count() == 1, "hover is kept"
    after = heap(session)
    assert page.evaluate(zoomed) == chosen, "zoom is kept"
    assert page.locator("#charts .plot[data-mine=yes]").count() == 2
    assert page.locator(f"{LOSS} .svg-container").count() == 1, "never a second chart"
    assert max(sizes) <= UPDATE, sizes
    assert after[0] - before[0] < 4 and after[1] - before[1] < 400, (before, after)
    assert wrong == []


def test_an_answer_is_played_back_in_step_with_the_charts(server: str, browser: Any) -> None:  # noqa: F811
    folder = samples.finished(Store())
    page, wrong = opened(browser, f"{server}/?run={folder.id}")
    page.wait_for_selector(".watched")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    slider = page.locator(".player input")
    assert "#### Rome" in page.inner_text(".watched .now") and cursors(page) == []
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.querySelector('.watched .now').innerText.includes('<script>')")
    assert "not in format" in page.inner_text(".watched .now")
    assert page.locator("#watch script, #watch img").count() == 0
    page.wait_for_timeout(200)
    assert cursors(page) == [0, 0, 0, 0]
    assert slider.get_attribute("aria-valuetext") == "step 0 of 20"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.player b').innerText === '10'")
    page.wait_for_timeout(200)
    assert cursors(page) == [10, 10, 10, 10]
    page.keyboard.press("Home")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    page.wait_for_selector(".player button >> text=Pause")
    page.wait_for_selector(".player button >> text=Play")
    assert slider.input_value() == "2" and page.inner_text(".player b") == "20"
    page.click(".watched summary")
    assert page.locator(".watched .moment").count() == 3
    assert asked == [], "nothing of this is the server's work"
    assert wrong == []


def test_a_reader_at_a_step_stays_there_while_the_run_goes_on(
    server: str, browser: Any, run: Growing  # noqa: F811
) -> None:
    run.steps(30)
    page, wrong = opened(browser, f"{server}/?run={run.folder.id}")
    page.wait_for_function("() => document.querySelector('.player b')?.innerText === '30'")
    run.steps(10)
    page.wait_for_function("() => document.querySelector('.player b').innerText === '40'")
    page.locator(".player input").focus()
    page.keyboard.press("ArrowLeft")
    page.click(".watched summary >> nth=0")
    run.steps(10)
    page.wait_for_function("() => document.querySelector('.player input').max === '5'")
    assert page.inner_text(".player b") == "30"
    assert page.locator(".watched details[open] .moment").count() == 6
    page.click("#question-pick input")
    page.locator("[role=option]", has_text="country 9").click()
    page.wait_for_function("() => document.querySelectorAll('.watched').length === 3")
    assert wrong == []


def test_search_and_filter_go_together(server: str, browser: Any) -> None:  # noqa: F811
    folder = samples.finished(Store())
    page, wrong = opened(browser, f"{server}/?run={folder.id}")
    page.wait_for_selector("#answers article")
    page.locator("#search textarea, #search input").first.press_sequentially("question 3? rome")
    page.wait_for_selector("#filters >> text=All · 5")
    assert page.locator("#answers article").count() == 5 and not page.locator("#pager").is_visible()
    page.click("#filters >> text=Right but not in format · 0")
    page.wait_for_selector("#answers >> text=No item with “question 3? rome”")
    page.locator("#search textarea, #search input").first.fill("")
    page.wait_for_selector("#filters >> text=Right but not in format · 23")
    assert page.locator("#answers .differs").count() > 20
    assert wrong == []
