"""The line of memory in the form: its words, its one click, and that it follows the form over the real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from spt import memory
from spt.memory import Estimate, Suggestion, Workload
from spt.spec import RunSpec
from spt.ui import form, needs
from spt.ui.access import Rules
from tests.ui.samples import HOSTILE
from tests.ui.served import served
from tests.ui.test_browser import CHROMIUM, browser, opened
from tests.ui.visitor import Visitor

__all__ = ["browser"]
GB = 10**9


def estimate(weights: int, **changes: Any) -> Estimate:
    work = Workload(rows=8, row_tokens=80, target_tokens=8, context_tokens=200, answer_tokens=24)
    settings: dict[str, Any] = {
        "model": "m", "revision": None, "precision": "fp32", "device": "CPU", "cuda": False, "parameters": 1,
        "weights": weights, "tuning": {}, "answers": {}, "libraries": 0, "work": work, "free": 10 * GB,
        "capacity": 16 * GB,
    }  # fmt: skip
    return Estimate(**settings | changes)


def offered() -> tuple[Suggestion, ...]:
    return (
        Suggestion(text="", change={"precision": "4bit"}, total=8 * GB, fits=True),
        Suggestion(text="", change={"batch_size": 1}, total=30 * GB, fits=False),
        Suggestion(text="", change={"steps": 1}, total=1, fits=True),
    )


def test_the_line_says_what_is_needed_and_what_there_is() -> None:
    html = needs.line(estimate(2 * GB), 10 * GB)
    assert "Needs about <b>2.0 GB</b>" in html and "10.0 GB of 16.0 GB are free" in html and "button" not in html
    assert "<b>Tight:</b>" in needs.line(estimate(9 * GB), 10 * GB)
    gpu = estimate(9 * GB, cuda=True, device=f"NVIDIA {HOSTILE}", free=1, capacity=24 * GB)
    assert needs.room(gpu) == 24 * GB, "what the worker holds is freed"
    assert "<script" not in needs.line(gpu, needs.room(gpu)) and "has 24.0 GB" in needs.line(gpu, needs.room(gpu))


def test_where_it_does_not_fit_one_click_is_offered_that_does() -> None:
    html = needs.line(estimate(32 * GB, suggestions=offered()), 10 * GB)
    assert "<b>Does not fit:</b> needs about 32.0 GB" in html and html.count("<button") == 1
    assert 'data-fix="precision">4-bit · about 8.0 GB' in html
    assert "Choose a smaller model" in needs.line(estimate(32 * GB), 10 * GB)


@pytest.mark.parametrize("name", ["precision", "batch_size", "shots", "model", "", None])
def test_a_click_changes_nothing_but_its_field(name: str | None) -> None:
    changes = needs.fix(SimpleNamespace(name=name))  # type: ignore[arg-type]
    assert len(changes) == len(needs.FIXES) <= len(form.FIELDS)
    for field, change in zip(needs.FIXES, changes, strict=True):
        assert change == needs.FIXES[field][0] if field == name else change == gr.skip()


def test_the_line_follows_the_form(spt_home: Path, tiny: Callable[[str], Path]) -> None:
    model = str(tiny("llama"))
    with served(Rules()) as address:
        visitor = Visitor(address)
        # Someone types 12: the 1 on the way is not reckoned.
        passing = visitor.event("command", "change")
        values = [None, *form.from_spec(RunSpec(model=model, batch_size=1))]
        visitor.http.post("/gradio_api/queue/join", json={
            "data": values, "fn_index": passing["id"], "session_hash": visitor.session, "trigger_id": None,
        }).raise_for_status()  # fmt: skip
        answer = visitor.tell("command", "change", model=model, batch_size=12)
        assert "Needs about" in visitor.shown(answer)
        assert any("…" in str(message["output"]) for message in visitor.heard)
        made = list((spt_home / "estimates").iterdir())
        assert [path.stem for path in made] == [memory.key(RunSpec(model=model, batch_size=12))]
        # What is known stands there at once, for every visitor; what does not matter to it changes nothing.
        other = Visitor(address)
        assert "Needs about" in other.shown(other.tell("command", "change", model=model, batch_size=12))
        assert not any("…" in str(message["output"]) for message in other.heard)
        assert "Needs" not in other.shown(other.tell("command", "change", model=model, batch_size=12, seed=4))
        # A model that cannot be had: one calm sentence.
        lost = other.shown(other.tell("command", "change", model="nobody/nothing"))
        assert "nobody/nothing" in lost and "Traceback" not in lost and "class=\\\"need\\\"" in lost


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")
def test_one_click_sets_the_form_in_a_browser(spt_home: Path, browser: Any) -> None:
    kept = spt_home / "estimates"
    kept.mkdir(parents=True)
    for spec, size in ((RunSpec(), 9000), (RunSpec(precision="4bit"), 1)):
        fix = Suggestion(text="", change={"precision": "4bit"}, total=GB // 10)
        found = estimate(size * GB // 10, suggestions=(fix,))
        (kept / f"{memory.key(spec)}.json").write_text(found.model_dump_json())
    with served(Rules()) as address:
        page, wrong = opened(browser, address)
        page.wait_for_selector(".need >> text=Does not fit: needs about 900 GB")
        page.click(".fixes >> text=4-bit")
        page.wait_for_selector("#command >> text=--precision 4bit")
        page.wait_for_selector(".need >> text=Needs about 100 MB")
        assert page.locator("#field-precision input").input_value() == "4-bit" and wrong == []
