"""Two browsers at one public page: each has its own runs, both see all of them; the operator may change every run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from spt.home import make_home
from tests.ui.test_browser import CHROMIUM, browser, fill, opened, serving

__all__ = ["browser"]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")


def begin(page: Any, seed: int) -> None:
    if not page.locator("#field-seed").is_visible():
        page.click("#advanced > button")
    fill(page, "seed", seed)
    page.wait_for_selector(f"#command >> text=--seed {seed}")
    page.click("#start")
    page.wait_for_selector(".pill.queued")


def test_two_browsers_and_the_operator(spt_home: Path, browser: Any) -> None:
    # The device is taken, so that all runs wait and no model is needed.
    with FileLock(make_home() / "device.lock"), serving(spt_home, "--operator-token", "open sesame") as address:
        mine, wrong = opened(browser.new_context(), address)
        other, wrong_there = opened(browser.new_context(), address)
        begin(mine, 1)
        begin(other, 2)
        other.wait_for_selector("text=Waiting for the device: 1 run before this one")
        ours = mine.url
        # The other's run is seen, and has no buttons; one's own is cancelled, after a reload and in another tab too.
        other.click(f"a[data-open='{ours.partition('=')[2]}']")
        other.wait_for_selector("text=Starting …")
        other.wait_for_selector("#stop", state="hidden")
        begin(other, 2)
        other.wait_for_selector("text=1 run before this one")
        tab, wrong_in_tab = opened(other.context, other.url)
        tab.click("#stop")
        other.wait_for_selector(".pill.new")
        assert mine.locator("#stop").is_visible()

        # Elsewhere the operator stops the first one.
        boss, wrong_of_boss = opened(browser.new_context(), f"{ours}&token=open+sesame")
        assert boss.url == ours
        boss.wait_for_selector("text=You are the operator here")
        boss.click("#stop")
        mine.wait_for_selector(".pill.new")
        assert wrong == wrong_there == wrong_in_tab == wrong_of_boss == []


def test_a_read_only_page(spt_home: Path, browser: Any) -> None:
    with serving(spt_home, "--read-only") as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("text=nothing can be started or changed here")
        assert not page.locator("#start").is_visible() and page.locator("text=Pick a run").is_visible()
