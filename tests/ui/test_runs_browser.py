"""The table of all runs in a real browser: search, sort, more, choose, delete by keyboard, open, and the address."""

from __future__ import annotations

from typing import Any

from spt.events import RunStopped, StepLoss
from spt.spec import RunSpec
from spt.store import Store
from tests.many import many_runs
from tests.ui import samples
from tests.ui.test_browser import browser, opened, pytestmark, server

__all__ = ["browser", "pytestmark", "server"]  # fixtures

ROWS = "document.querySelectorAll('#all-runs tbody tr').length"
SEARCH = "#search-runs textarea, #search-runs input"
NARROW = "() => document.documentElement.scrollWidth"


def focused(page: Any) -> str:
    return str(page.evaluate("() => document.activeElement.textContent"))


def selected(page: Any, tab: str) -> None:
    page.wait_for_selector(f"[data-tab-id={tab}][aria-selected=true]")


def test_the_table_of_all_runs(server: str, browser: Any) -> None:
    many_runs(60, items=4)
    folder = samples.finished(Store(), closed=True)
    page, wrong = opened(browser, f"{server}/?tab=runs")
    selected(page, "runs")
    page.wait_for_function(f"() => {ROWS} === 50")
    page.click(".more")
    page.wait_for_function(f"() => {ROWS} === 61")
    assert page.locator("#all-runs tbody >> text=another version of spt").count() == 3
    page.click("th[data-by=exact_match] button")
    page.wait_for_selector("th[data-by=exact_match][aria-sort=descending]")
    assert page.locator("th[aria-sort=none]").count() == 7 and page.locator("tbody th[scope=row]").count() == 61
    page.fill(SEARCH, "finished capitals-mc bundled steps")
    page.wait_for_function(f"() => {ROWS} === 1")

    # Two of one benchmark can be compared, also where the search no longer shows one of them.
    page.check(f"input[value='{folder.id}']")
    page.wait_for_selector(".choice >> text=Choose another run of capitals-mc")
    page.fill(SEARCH, "finished capitals-mc gemma")
    page.wait_for_function(f"() => {ROWS} > 0 && !document.querySelector(`#all-runs [value='{folder.id}']`)")
    other = page.locator("#all-runs tbody input").first
    other.check()
    page.wait_for_selector(f".choice a[href='?compare={folder.id},{other.input_value()}']")
    page.click("[data-clear]")
    page.wait_for_selector(".choice b", state="detached")

    # A run that goes on changes its row, and leaves the focus where it is.
    going = Store().create(RunSpec(benchmark="trivia", seed=99))
    page.fill(SEARCH, going.id)
    page.wait_for_selector(f"[data-open='{going.id}']")
    page.focus(f"[data-key='delete-{going.id}']")
    going.append(StepLoss(step=7, loss=1, learning_rate=0.1, grad_norm=1, seconds=1))
    going.append(RunStopped())
    page.wait_for_selector("#all-runs >> text=step 7 of 80")
    assert focused(page) == "Delete"
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-alter=delete]")
    page.wait_for_function("() => document.activeElement.textContent === 'Cancel'")
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "Really delete?"
    page.keyboard.press("Enter")
    page.wait_for_selector("#all-runs >> text=No run has all these words")
    assert not going.path.exists()

    # Opened in the page, and back; and what is deleted while it is shown.
    page.fill(SEARCH, folder.id)
    page.click(f"#all-runs a[data-open='{folder.id}']")
    page.wait_for_selector(".pill.finished >> visible=true")
    selected(page, "run")
    page.wait_for_url(f"{server}/?run={folder.id}")
    page.go_back()
    selected(page, "runs")
    page.wait_for_url(f"{server}/?tab=runs")
    page.goto(f"{server}/?run={folder.id}")
    page.click("a.every")
    selected(page, "runs")
    page.wait_for_url(f"{server}/?run={folder.id}&tab=runs")
    page.fill(SEARCH, folder.id)
    page.wait_for_function(f"() => {ROWS} === 1")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(NARROW) <= 390
    page.click("[data-ask=doubt]")
    page.click("[data-alter=delete]")
    page.wait_for_function(f"() => {ROWS} === 0")
    page.click("[data-tab-id=run]")
    page.wait_for_selector("text=any more: it was deleted")
    page.wait_for_url(f"{server}/?run={folder.id}")
    assert wrong == []
