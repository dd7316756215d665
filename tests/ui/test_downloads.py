"""The files of a finished run, over HTTP from the real server."""

from __future__ import annotations

import io
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from spt.spec import METHODS, RunSpec
from spt.store import RunFolder, Store
from spt.ui import scores
from spt.ui.access import Rules
from tests.finished import finished_run
from tests.ui import samples
from tests.ui.samples import HOSTILE
from tests.ui.served import served
from tests.ui.test_browser import CHROMIUM, browser, opened

__all__ = ["browser"]


@pytest.fixture
def site(spt_home: Path) -> Iterator[httpx2.Client]:
    with served(Rules()) as address, httpx2.Client(base_url=address, trust_env=False) as client:
        yield client


@pytest.fixture
def run(spt_home: Path) -> RunFolder:
    return finished_run(RunSpec(items=12), lambda method, i, item: item.target if method == "few_shot" else HOSTILE)


def links(html: str) -> list[str]:
    return re.findall(r'href="([^"]+)"', html)


def test_every_link_of_the_page_gives_its_file(site: httpx2.Client, run: RunFolder) -> None:
    result = run.result()
    assert result is not None
    report, archive = links(scores.exports(run.id))
    own, *answers = links(scores.downloads(result))
    text = site.get(report)
    assert text.status_code == 200 and text.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script" not in text.text and "default-src 'none'" in text.headers["content-security-policy"]
    with zipfile.ZipFile(io.BytesIO(site.get(archive).content)) as opened:
        assert opened.testzip() is None
        assert {"report.html", "result.json", "predictions.csv", "predictions.parquet"} <= set(opened.namelist())
        assert opened.read("report.html").decode() == text.text
    assert site.get(own).text == (run.path / "result.json").read_text()
    assert len(answers) == len(METHODS)
    for method, address in zip(METHODS, answers, strict=True):
        given = site.get(address)
        assert given.text == (run.path / "predictions" / f"{method}.jsonl").read_text()
        assert given.headers["content-type"].startswith("application/jsonl")
        assert given.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("address", ["report/{}.html", "export/{}.zip", "result/{}.json", "answers/{}/zero_shot.jsonl"])
def test_where_there_is_nothing_to_give_a_sentence_says_so(site: httpx2.Client, run: RunFolder, address: str) -> None:
    tricks = ("..", "..%2f..%2fetc%2fpasswd", f"..%2fruns%2f{run.id}", "%00", "x" * 5000, "<b>", "a/../b")
    for name in ("nowhere", *tricks):
        answer = site.get(f"/{address.format(name)}")
        assert answer.status_code == 404, name
        if name not in ("..", "a/../b"):  # these are another address before they are sent
            assert "There is no run" in answer.text and "<b>" not in answer.text
    waiting = Store().create(RunSpec(seed=1))
    answer = site.get(f"/{address.format(waiting.id)}")
    assert answer.status_code == 409 and "is not finished" in answer.text
    assert site.get("/").status_code == 200, "the server goes on"


def test_an_unknown_method_and_a_run_that_cannot_be_read(site: httpx2.Client, run: RunFolder) -> None:
    assert site.get(f"/answers/{run.id}/..%2fresult.jsonl").status_code == 404
    assert "no method &#x27;psychic&#x27;" in site.get(f"/answers/{run.id}/psychic.jsonl").text
    (run.path / "result.json").write_bytes(b"{}")
    broken = site.get(f"/export/{run.id}.zip")
    assert broken.status_code == 409 and "another version of spt" in broken.text
    shutil.rmtree(run.path)
    assert site.get(f"/export/{run.id}.zip").status_code == 404


def test_a_file_is_made_once_for_a_result(site: httpx2.Client, run: RunFolder) -> None:
    first = site.get(f"/export/{run.id}.zip").content
    assert site.head(f"/export/{run.id}.zip").headers["content-length"] == str(len(first))
    shutil.rmtree(run.path / "predictions")
    assert site.get(f"/export/{run.id}.zip").content == first, "not made again, or it would miss the answers"
    os.utime(run.path / "result.json", (1, 1))  # another result
    lost = site.get(f"/export/{run.id}.zip")
    assert lost.status_code == 409 and "are gone" in lost.text


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")
def test_charts_report_and_archive_arrive_in_a_browser(browser: Any, site: httpx2.Client) -> None:
    folder = samples.finished(Store())
    page, wrong = opened(browser, f"{site.base_url}/?run={folder.id}".replace("//?", "/?"))
    page.wait_for_selector("#loss-chart .main-svg")
    page.wait_for_selector("#probe-chart .main-svg")

    def given(selector: str, number: int = 0) -> tuple[str, bytes]:
        with page.expect_download() as download:
            page.locator(selector).nth(number).click()
        return download.value.suggested_filename, Path(download.value.path()).read_bytes()

    for number, title in enumerate(("format-knowledge-and-score-step-by-step", "training-loss")):
        name, data = given("[data-picture=png]", number)
        assert name == f"{folder.id}-{title}.png" and data.startswith(b"\x89PNG")
        width = int.from_bytes(data[16:20])
        assert width == 2200
        name, data = given("[data-picture=svg]", number)
        text = data.decode()
        assert name.endswith(".svg") and folder.id in text and ("Exact match", "average")[number] in text
        assert "--soft" not in text and "rgb(0, 129, 94)" in text, "colours are those of the theme, not their names"
    name, data = given("#exports >> text=ZIP")
    assert name == f"{folder.id}.zip" and zipfile.is_zipfile(io.BytesIO(data))
    with page.expect_popup() as popup:
        page.click("#exports >> text=Report")
    popup.value.wait_for_selector("text=Zero-shot scored")
    assert wrong == []
