"""How quick the page is with many stored runs: reading the list, and the page in Chromium.

    python -m perf.runs_tab [RUNS]

Made-up runs in a folder of their own, a real server, a browser without a cache at each opening. `interactive` = from
the address to the last run at the side (tab Run), or to the rows of the table (tab Runs).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

from spt.store import Store
from spt.ui.listed import Lister
from tests.many import many_runs

TIMES = 5


def seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def say(what: str, values: list[float]) -> None:
    print(f"{what}: median {median(values):.3f} s, worst {max(values):.3f} s of {len(values)}", flush=True)


def reading() -> None:
    """The list, by a process that has read nothing yet and by one that has."""
    say("list, cold", [seconds(Lister(Store()).now) for _ in range(TIMES)])
    lister = Lister(Store())
    lister.now()
    warm = []
    for _ in range(TIMES):
        lister.expire()
        warm.append(seconds(lister.now))
    say("list, warm", warm)


def opening(browser: Browser, address: str, ready: str) -> list[float]:
    times = []
    for _ in range(TIMES):
        page = browser.new_context().new_page()
        times.append(seconds(lambda page=page: (page.goto(address), page.wait_for_selector(ready))))
        page.close()
    return times


def using(page: Page) -> None:
    """What a person does in the table, from the click to the rows."""
    rows = "document.querySelectorAll('#all-runs tbody tr')"
    say("more rows", [seconds(lambda: (page.click(".more"), page.wait_for_function(f"{rows}.length > 50")))])
    sort = "th[data-by=exact_match]"
    say("sort", [
        seconds(lambda way=way: (page.click(f"{sort} button"), page.wait_for_selector(f"{sort}[aria-sort={way}]")))
        for way in ("descending", "ascending")
    ])  # fmt: skip
    box = page.locator("#search-runs textarea, #search-runs input")
    found = "document.querySelector('#all-runs .count').textContent.includes(' of ')"
    say("search", [seconds(lambda: (box.fill("stopped olmo"), page.wait_for_function(found)))])


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as home:
        os.environ["SPT_HOME"] = home
        many_runs(number)
        print(f"{number} runs")
        reading()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen([sys.executable, "app.py", "--port", str(port)], stdout=subprocess.DEVNULL)
        address = f"http://127.0.0.1:{port}"
        try:
            wait_for(address)
            with sync_playwright() as playwright:
                chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                say("tab Run, interactive", opening(browser, address, "a.every"))
                say("tab Runs, interactive", opening(browser, f"{address}/?tab=runs", "#all-runs tbody tr"))
                page = browser.new_page()
                page.goto(f"{address}/?tab=runs")
                page.wait_for_selector("#all-runs tbody tr")
                using(page)
                browser.close()
        finally:
            server.terminate()
            server.wait(30)


def wait_for(address: str) -> None:
    for _ in range(240):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise SystemExit("The page does not answer.")


if __name__ == "__main__":
    main()
