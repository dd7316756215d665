"""`report` and `export` on the command line: where the file goes, and one sentence where there is none."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from spt import cli
from spt.report import html_report
from spt.spec import RunSpec
from spt.store import Store
from tests.whole import whole_run

SPEC = RunSpec(items=8, steps=4)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def spt(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["spt", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_files_go_where_they_are_asked_for(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = whole_run(SPEC)
    assert spt(monkeypatch, "report", folder.id) == 0
    assert f"Wrote {here / folder.id}.html (" in capsys.readouterr().out
    assert (here / f"{folder.id}.html").read_text() == html_report(folder)
    assert spt(monkeypatch, "export", folder.id) == 0
    assert f"Wrote {here / folder.id}.zip (" in capsys.readouterr().out
    for _ in "replaced", "the second time":
        assert spt(monkeypatch, "export", folder.id, "-o", "other.zip") == 0
    assert zipfile.ZipFile("other.zip").testzip() is None
    assert sorted(path.name for path in here.iterdir()) == [f"{folder.id}.html", f"{folder.id}.zip", "other.zip"]


@pytest.mark.parametrize("command", ["report", "export", "push"])
def test_a_run_that_is_not_there_or_not_finished_is_one_sentence(
    command: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unfinished = Store().create(SPEC).id
    more = ("--repo", "me/x") if command == "push" else ()
    for run, said in (("nothing", "There is no run 'nothing'"), (unfinished, "is not finished")):
        assert spt(monkeypatch, command, run, *more) == 2
        out, err = capsys.readouterr()
        assert said in err and err.count("\n") == 1 and not out
    assert not list(here.iterdir())


def test_a_place_that_cannot_be_written_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = whole_run(SPEC)
    for command in ("report", "export"):
        assert spt(monkeypatch, command, folder.id, "-o", "nowhere/file") == 2
        assert "cannot be written: no such file or directory." in capsys.readouterr().err
