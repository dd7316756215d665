"""The Playground in a real browser, with the real worker and a tiny model: ask, stream, cancel, two visitors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spt import questions
from spt.experiment import ModelCache
from spt.runner import execute
from spt.spec import METHODS
from spt.store import Store
from tests.runs import eventually, small_spec
from tests.tiny import make
from tests.ui.samples import HOSTILE
from tests.ui.test_browser import browser, opened, pytestmark, server

__all__ = ["browser", "pytestmark", "server"]  # fixtures

SEEN_JS = """() => {
  window.seen = new Set();
  const look = () => window.seen.add(document.querySelector('#play-answer')?.innerText || '');
  new MutationObserver(look).observe(document.querySelector('#play-main'), {subtree: true, childList: true});
}"""


def test_ask_a_finished_run(
    spt_home: Path, tiny: Callable[[str], Path], tmp_path: Path, browser: Any, request: Any
) -> None:
    closed = Store().create(small_spec(tiny("llama"), benchmark="capitals-mc", steps=1, items=4, probe_every=0))
    long = make("llama", tmp_path / "long", max_position_embeddings=2048)  # its answers take seconds
    slow = Store().create(small_spec(long, benchmark="arithmetic", steps=1, items=4, probe_every=0))
    for folder in (closed, slow):
        execute(folder, ModelCache())
    address = request.getfixturevalue("server")

    # A test question by click gets the stored answers, with log p of its options.
    page, wrong = opened(browser, f"{address}/?tab=play&run={closed.id}")
    page.wait_for_selector("#play-options textarea")
    page.click("[data-example] >> nth=0")
    page.wait_for_selector(".asked-state >> text=Answered.")
    question = page.input_value("#play-question textarea")
    row = next(r for r in closed.predictions("zero_shot") if r.question == question)
    shown = page.locator(".asked .reply").all_inner_texts()
    stored = [next(r for r in closed.predictions(m) if r.id == row.id) for m in METHODS]
    for answer, text in zip(stored, shown, strict=True):
        assert (answer.response or "(empty answer)").split("\n")[0] in text
    assert page.locator(".ranks .best").count() == 3
    best = f"{max(row.option_logprobs):.2f}".replace("-", "−")
    assert page.locator(".asked .zero .best b").inner_text() == best
    page.fill("#play-options textarea", "one\none")
    page.click("#play-ask")
    page.wait_for_selector("#play-answer >> text=Two options are the same")

    # A question of one's own to another run, sent with Enter, streams in; hostile text stays text.
    page.click("#play-run input")
    page.click("[role=option] >> text=arithmetic")
    page.wait_for_selector("#play-options", state="hidden")
    page.evaluate(SEEN_JS)
    page.fill("#play-question textarea", f"How many? {HOSTILE}")
    page.press("#play-question textarea", "Enter")
    page.wait_for_selector("#play-answer >> text=How many?")
    page.wait_for_selector(".asked-state >> text=Answered.")
    assert len(page.evaluate("() => [...window.seen]")) > 1, "it grew before it was there"

    # Somebody else sees nothing of it. (Cancelling in mid-answer is proved without a browser, where time stands still.)
    other, wrong_there = opened(browser, f"{address}/?tab=play&run={slow.id}")
    other.fill("#play-question textarea", "And mine?")
    other.click("#play-ask")
    other.wait_for_selector(".asked-state >> text=Answered.")
    assert "How many?" not in other.inner_text("#play-main") and "And mine?" in other.inner_text("#play-answer")
    eventually(lambda: not questions.waiting() and not list((spt_home / "asks").iterdir()), what="a clean folder")

    assert page.locator("#play-main img").count() == 0 and page.locator("#play-main script").count() == 0
    assert page.title() != "hacked" and "<script>alert(1)</script>" in page.inner_text("#play-answer")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    tops = [box.bounding_box()["y"] for box in page.locator(".asked .reply").all()]
    assert tops == sorted(set(tops)), "stacked"
    assert wrong == [] and wrong_there == []
