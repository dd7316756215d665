"""Comparing runs in a real browser: from the table to the tab, four ways, filters, search, address, a phone."""

from __future__ import annotations

from typing import Any

from spt.store import Store
from tests.compared import BASE, POST, looping, run
from tests.ui.test_browser import browser, opened, pytestmark, server

__all__ = ["browser", "pytestmark", "server"]  # fixtures

CHART = "() => document.querySelector('#compare-chart .plot')?.data?.length || 0"
CARDS = "#compare-body article"


def selected(page: Any, tab: str) -> None:
    page.wait_for_selector(f"[data-tab-id={tab}][aria-selected=true]")


def test_runs_compared(server: str, browser: Any) -> None:
    first, second = run(BASE, items=24), run(POST, items=24)
    third = run("bundled", items=24)
    looping(first, 3)
    page, wrong = opened(browser, f"{server}/?tab=runs")
    selected(page, "runs")
    page.check(f"input[value='{first.id}']")
    page.wait_for_selector(".choice >> text=Choose another run")
    page.check(f"input[value='{second.id}']")
    page.click(".choice a[data-compare]:not([aria-disabled])")
    selected(page, "compare")
    page.wait_for_selector(".compared")
    page.wait_for_url(lambda url: "tab=compare" in url and "compare=" in url and second.id in url)
    page.wait_for_function(f"() => ({CHART})() > 6")
    assert page.locator(".ways figure").count() == 4 and page.locator(CARDS).count() == 10

    # The counts filter, several together, with the keyboard as well.
    loops = page.locator("[data-column='0'][data-mark=loops]")
    loops.click()
    page.wait_for_function(f"() => document.querySelectorAll('{CARDS}').length === 1")
    assert page.locator(f"{CARDS} .mark.loops").count() == 1
    page.wait_for_function("() => document.activeElement?.dataset.mark === 'loops'")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => document.querySelectorAll('{CARDS}').length === 10")

    # Another view: filters, search and pages.
    page.click("#compare-filters >> text='Soft prompt'")
    page.wait_for_selector("#compare-filters >> text=Marks differ")
    page.fill("#compare-search textarea, #compare-search input", "capital of peru")
    page.wait_for_function(f"() => document.querySelectorAll('{CARDS}').length < 10")
    page.fill("#compare-search textarea, #compare-search input", "")
    page.wait_for_selector("#compare-pager >> text=page 1 of 3")
    page.click("#compare-pager button >> text=Next")
    page.wait_for_selector("#compare-pager >> text=page 2 of 3")

    # A further run by the box, and back by the address.
    page.click("#compare-pick input")
    page.click(f"[role=option] >> text={third.id[-6:]}")
    page.wait_for_selector(".sides li >> nth=2")
    page.wait_for_url(lambda url: third.id in url)
    page.keyboard.press("Escape")
    page.click("[data-tab-id=runs]")
    selected(page, "runs")
    page.wait_for_url(lambda url: "compare" not in url)
    page.click("[data-tab-id=compare]")
    page.wait_for_url(lambda url: third.id in url)
    page.reload()
    selected(page, "compare")
    page.wait_for_selector(".sides li >> nth=2")
    page.wait_for_function(f"() => ({CHART})() > 6")

    # Deleted meanwhile: said, and the others are compared all the same.
    Store().get(third.id).delete()
    page.click("#compare-ref label >> nth=1")
    page.wait_for_selector("#compare-tab >> text=it was deleted")
    page.wait_for_function("() => document.querySelectorAll('.sides li').length === 2")

    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(300)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    page.click(f".sides a[data-open='{first.id}']")
    selected(page, "run")
    page.wait_for_url(f"{server}/?run={first.id}")
    assert wrong == []
