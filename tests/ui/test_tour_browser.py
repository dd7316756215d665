"""The tour for a stand in a real browser: it plays, a touch ends it, and it comes back."""

from __future__ import annotations

from typing import Any

from spt.store import Store
from tests.ui import samples
from tests.ui.test_browser import PATIENCE, browser, pytestmark, server  # noqa: F401  (fixtures, and the mark)

IDLE = 90_000  # ms, as in kiosk.js


def scene_of(page: Any) -> str:
    return str(page.inner_text(".tour-top"))


def test_it_plays_until_it_is_touched_and_comes_back(server: str, browser: Any) -> None:  # noqa: F811
    folder = samples.finished(Store(), closed=True)
    page = browser.new_page(viewport={"width": 1360, "height": 768})
    page.set_default_timeout(PATIENCE)
    wrong: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url) if "component_server" in request.url else None)
    page.clock.install()
    page.goto(f"{server}/?kiosk")
    page.wait_for_selector(".tour-play.shown")
    assert "Zero-shot scored 0" in scene_of(page)
    reach = "() => Math.max(...document.querySelector('.kiosk .plot').data.filter(t => t.meta === 'curve')[0].x)"
    page.wait_for_function(f"({reach})() > 0")
    early = page.evaluate(reach)
    page.wait_for_function(f"({reach})() > {early}")
    assert page.evaluate(reach) < 20 and page.locator(".kiosk script, .kiosk img").count() == 0
    body = page.evaluate("() => parseFloat(getComputedStyle(document.querySelector('.tour-question')).fontSize)")
    assert body >= 22
    assert len(asked) == 1, "the server is asked once a run, not once a frame"
    page.clock.run_for(30_000)
    page.wait_for_selector(".tour-scores.shown")
    assert page.locator(".tour-scores tbody tr").count() == 3

    page.mouse.click(600, 400)
    page.wait_for_selector(".kiosk", state="hidden")
    page.wait_for_selector(".pill.finished")
    page.wait_for_url(f"**run={folder.id}")
    page.clock.run_for(IDLE - 5000)
    page.keyboard.press("Tab")
    page.clock.run_for(IDLE - 5000)
    assert not page.locator(".kiosk").is_visible(), "a key is a visitor"
    page.clock.run_for(10_000)
    page.wait_for_selector(".kiosk", state="visible")
    page.wait_for_selector(".tour-top.shown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".kiosk", state="hidden")
    assert wrong == []


def test_without_the_word_there_is_no_tour(server: str, browser: Any) -> None:  # noqa: F811
    page = browser.new_page()
    page.clock.install()
    page.goto(server)
    page.wait_for_selector("#start")
    page.clock.run_for(2 * IDLE)
    assert not page.locator(".kiosk").is_visible() and page.locator(".kiosk > *").count() == 0
