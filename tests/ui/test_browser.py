"""The whole path in a real browser: Start, curves grow, reload, Stop, Resume, result, filters.

A real server and worker, a tiny random model, headless Chromium.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spt import queue
from spt.events import RunStopped
from spt.spec import RunSpec
from spt.store import Store
from tests import fake_judge
from tests.runs import eventually, small_spec
from tests.ui import samples

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")

STEPS = 2000  # of a few milliseconds: the run must still be going when the page is looked at again
PATIENCE = 60_000  # ms; a worker's first import of torch takes its time on a busy machine


@pytest.fixture
def server(spt_home: Path) -> Iterator[str]:
    """The address of `python app.py`, once it answers."""
    with serving(spt_home) as address:
        yield address


@contextmanager
def serving(spt_home: Path, *words: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "SPT_HOME": str(spt_home), "PORT": str(port), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen([sys.executable, "app.py", *words], cwd=ROOT, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: answers(address, process), what="the page")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def answers(address: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "app.py ended"
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except OSError:
        return False
    return True


@pytest.fixture
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def opened(browser: Any, address: str) -> tuple[Any, list[str]]:
    """A page of a browser or of a context, and what went wrong in it: console errors and requests to elsewhere."""
    page = browser.new_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.set_default_timeout(PATIENCE)
    wrong: list[str] = []

    def note(text: str) -> None:
        # Leaving a page ends the requests under way, and Gradio says so in these words: no fault of the page.
        if "AbortError" not in text and "Connection errored out" not in text:
            wrong.append(text)

    page.on("console", lambda message: note(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: note(str(error)))
    here = ("http://127.0.0.1:", "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(here) else wrong.append(request.url))
    page.goto(address)
    page.wait_for_selector("#start", state="attached")  # another tab may be open
    return page, wrong


def fill(page: Any, field: str, value: object) -> None:
    box = page.locator(f"#field-{field} input").first
    box.fill(str(value))
    box.press("Enter")


def give(page: Any, file: Path) -> None:
    """Upload a file through the button."""
    with page.expect_file_chooser() as chooser:
        page.click("#upload")
    chooser.value.set_files(file)


def last_step(page: Any) -> int:
    """The last step that the loss curve shows; long curves are drawn through fewer points."""
    return int(page.evaluate("() => document.querySelector('#loss-chart .plot')?.data?.[0]?.x.at(-1) || 0"))


def test_from_start_to_result(server: str, browser: Any, tiny: Callable[[str], Path]) -> None:
    page, wrong = opened(browser, server)
    page.wait_for_selector(".welcome")
    fill(page, "model", tiny("llama"))
    page.click("#advanced > button")
    settings = {"items": 18, "batch_size": 2, "probe_every": 100, "probe_items": 3, "virtual_tokens": 0}
    for field, value in settings.items():
        fill(page, field, value)
    page.wait_for_selector("#problem >> text=Virtual tokens =")
    fill(page, "virtual_tokens", 3)
    page.wait_for_selector("#problem >> text=Virtual tokens =", state="hidden")
    fill(page, "steps", STEPS)
    page.wait_for_selector(f"#command >> text=--steps {STEPS}")

    page.click("#start")
    page.wait_for_selector(".pill.running")
    page.wait_for_function("() => (document.querySelector('#loss-chart .plot')?.data?.[0]?.x.at(-1) || 0) > 3")
    assert "?run=capitals-llama" in page.url

    # A reload, and a second page, show the run so far and go on; the chart is updated in place.
    page.reload()
    page.wait_for_function("() => (document.querySelector('#loss-chart .plot')?.data?.[0]?.x.at(-1) || 0) > 3")
    page.evaluate("() => { document.querySelector('#loss-chart .plot').dataset.mine = 'yes' }")
    seen = last_step(page)
    page.wait_for_function(f"() => document.querySelector('#loss-chart .plot').data[0].x.at(-1) > {seen}")
    assert page.evaluate("() => document.querySelector('#loss-chart .plot').dataset.mine") == "yes"
    second, wrong_there = opened(browser, page.url)
    second.wait_for_selector(".pill.running")
    second.close()

    page.click("#stop")
    page.wait_for_selector(".pill.stopped")
    page.click("#resume")
    page.wait_for_selector(".pill.finished")
    assert last_step(page) == STEPS
    assert page.locator(".scores tbody tr:not(.pending)").count() == 3
    page.wait_for_selector("#answers article")
    total = page.locator("#answers article").count()
    page.click("#filters >> text=Wrong")
    page.wait_for_selector("#answers >> text=Not right with the soft prompt")
    assert total == 18
    page.wait_for_selector("#start >> text=Show the result")
    assert wrong == [] and wrong_there == []


def test_a_file_of_ones_own_with_seeds_and_a_control(
    server: str, browser: Any, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    page, wrong = opened(browser, server)
    rows = [f"Which is number {i} <script>alert(1)</script>?,word{i},\n" for i in range(30)]
    (tmp_path / "bad.csv").write_text("question,answer,topic\n" + "".join(rows) + "Which has none?,,\n")
    (tmp_path / "mine.csv").write_text("question,answer,topic\n" + "".join(rows))
    give(page, tmp_path / "bad.csv")
    page.wait_for_selector("text=bad.csv, row at line 32 has no answer")
    assert "bad.csv" not in page.inner_text("#command"), "the form keeps its choice"
    give(page, tmp_path / "mine.csv")
    page.wait_for_selector("#preview mark >> text=word1")
    assert page.locator("#preview li mark").count() == 5 and page.locator("#preview script").count() == 0
    page.wait_for_selector("#command >> text=-mine.csv")

    fill(page, "model", tiny("llama"))
    page.click("#advanced > button")
    settings = {"steps": 4, "items": 6, "batch_size": 2, "probe_every": 2, "probe_items": 2, "virtual_tokens": 2}
    for field, value in settings.items():
        fill(page, field, value)
    page.click("#evidence > button")
    fill(page, "seeds", 2)
    page.click("#field-control >> text=Shuffled answers")
    page.wait_for_selector("#command >> text=--control shuffled")
    page.click("#start")
    page.wait_for_selector(".pill.finished")
    page.wait_for_selector(".findings >> text=What this run shows")
    assert not page.locator("#preview").is_visible()
    assert page.locator(".run-head >> text=mine.csv").count() == 1
    page.click(".findings summary")
    page.wait_for_selector(".tests >> text=Shuffled answers control")
    assert page.locator(".scores > table tbody tr:not(.pending)").count() == 6  # three, seeds, control, tuned items
    assert page.locator(".cells.shuffled").is_visible()
    assert page.locator("#answers article >> nth=0 >> .reply").count() == 3
    page.click("#controls input")
    page.wait_for_selector("#answers .reply.shuffled")
    with fake_judge.serve(lambda ask: fake_judge.verdict(True, False)) as judge:
        page.click("#judge-form > button")
        page.fill("#judge-model input, #judge-model textarea", "tester")
        page.fill("#judge-url input, #judge-url textarea", judge.url)
        page.click("#judge-start")
        page.wait_for_selector(".judged >> text=tester")
    page.wait_for_selector("#answers >> text=judge: right")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert wrong == []


def test_a_run_resumed_elsewhere_is_noticed(server: str, browser: Any, tiny: Callable[[str], Path]) -> None:
    folder = Store().create(small_spec(tiny("llama")))
    folder.append(RunStopped())
    page, wrong = opened(browser, f"{server}/?run={folder.id}")
    page.wait_for_selector(".pill.stopped")
    queue.submit(folder)
    page.wait_for_selector(".pill.finished")
    page.wait_for_selector("a[aria-current] >> text=finished")
    page.set_viewport_size({"width": 390, "height": 844})
    unit = page.locator(".scores td:last-child small").first
    assert unit.evaluate("e => parseFloat(getComputedStyle(e).paddingLeft)") > 0, "a space between number and unit"
    assert wrong == []


def test_hostile_text_and_an_unknown_run(server: str, browser: Any) -> None:
    folder = samples.finished(Store(), closed=True)
    page, wrong = opened(browser, f"{server}/?run={folder.id}")
    page.wait_for_selector("#answers article")
    assert page.locator("#answers article").count() == 20
    page.click("#next")
    page.wait_for_selector("#pager >> text=page 2 of 3")
    page.wait_for_selector("#pager >> text=21–40 of 45")
    assert page.locator("#main img").count() == 0 and page.locator("#main script").count() == 0
    assert page.title() != "hacked" and "<script>alert(1)</script>" in page.inner_text("#answers")
    page.wait_for_selector("text=First letter of the answers")
    other = Store().create(RunSpec(benchmark="trivia"))
    page.goto(page.url)
    page.click(f"a[data-open='{other.id}']")
    page.wait_for_selector(".pill.new")
    page.wait_for_url(f"**/?run={other.id}")
    page.go_back()
    page.wait_for_selector(".pill.finished")
    from_folder = Store().create(RunSpec(benchmark="arc_easy", data_dir="/somewhere", holdout_topic="art"))
    page.goto(f"{server}/?run={from_folder.id}")
    page.wait_for_selector("#command >> text=--data-dir /somewhere")
    page.wait_for_timeout(1500)  # what fills the form is no edit, which would say the values of before
    command = page.inner_text("#command")
    assert "--benchmark arc_easy" in command and "--holdout-topic art" in command
    page.goto(f"{server}/?run=nowhere")
    page.wait_for_selector("text=There is no run")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/?run={folder.id}")
    page.wait_for_selector("#answers article")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert wrong == []
