"""Files that are given to the page, their preview, and what a page reached from elsewhere may be told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gradio as gr
import pytest

from spt.benchmarks import own_file
from spt.spec import RunSpec, UserError
from spt.store import Store
from spt.ui import app, form, judging, preview, uploads
from spt.ui.text import benchmark_title
from tests.ui import samples
from tests.ui.samples import HOSTILE
from tests.ui.test_parts import Tags

ROOT = Path(__file__).parents[2]


def questions(path: Path, last: str = "a") -> Path:
    rows = [{"question": f"Q{i} {HOSTILE}", "answer": "a", "topic": HOSTILE} for i in range(11)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"question": "last", "answer": last}]))
    return path


def values(**changes: object) -> tuple[object, ...]:
    return tuple((dict(zip(form.FIELDS, form.from_spec(RunSpec()), strict=True)) | changes).values())


def test_an_upload_is_kept_by_its_content(tmp_path: Path, spt_home: Path) -> None:
    kept = uploads.keep(questions(tmp_path / "my questions.jsonl"))
    assert kept.parent == spt_home / "uploads" and kept.name.endswith("-my-questions.jsonl")
    assert uploads.keep(questions(tmp_path / "my questions.jsonl")) == kept
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert benchmark_title(str(kept)) == "my-questions.jsonl" and uploads.is_upload(str(kept))


def test_bad_uploads_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.exe").write_bytes(b"MZ")
    with pytest.raises(UserError, match=r"a\.exe is no \.jsonl or \.csv file"):
        uploads.keep(tmp_path / "a.exe")
    monkeypatch.setattr(uploads, "MAX_BYTES", 10)
    with pytest.raises(UserError, match="is the most"):
        uploads.keep(questions(tmp_path / "a.jsonl"))
    assert own_file.MAX_BYTES == 200_000_000


def test_a_refused_upload_is_deleted_and_leaves_the_form_as_it_was(tmp_path: Path, spt_home: Path) -> None:
    upload = next(each.fn for each in app.build(Store()).fns.values() if each.name == "upload")
    bad = questions(tmp_path / "bad.jsonl", last="")
    with pytest.raises(gr.Error, match=r"^'?bad\.jsonl, row at line 12 has no answer"):
        upload(str(bad), samples.request(), *values())
    assert not bad.exists() and not list(spt_home.glob("uploads/*")), "the form keeps its choice: nothing is returned"
    good = upload(str(questions(tmp_path / "good.jsonl")), samples.request(), *values())
    assert good["value"].endswith("-good.jsonl") and Path(good["value"]).exists()
    # In another format it can be used: that is for the settings, which are open to be changed, and not for the file.
    rows = [{"question": f"Q{i}", "answer": f"First.\nThen #### {i}"} for i in range(12)]
    (tmp_path / "worked.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert upload(str(tmp_path / "worked.jsonl"), samples.request(), *values(answer_format="option-copy"))["value"]


def test_a_visitor_from_elsewhere_sees_names_and_no_folders(
    tmp_path: Path, spt_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPT_DATA_DIR", str(tmp_path / "sets"))
    kept = uploads.keep(questions(tmp_path / "own.jsonl"))
    for benchmark, shown in ((str(kept), "own.jsonl"), ("gsm8k", "sets")):
        spec = form.to_spec(values(benchmark=benchmark), local=False)
        assert str(tmp_path) in form.command_html(spec)
        html = form.command_html(spec, local=False)
        assert shown in html and str(tmp_path) not in html


def test_preview_marks_the_target_and_counts(tmp_path: Path) -> None:
    kept = uploads.keep(questions(tmp_path / "own.jsonl"))
    html = preview.html(preview.read(form.to_spec(values(benchmark=str(kept)), local=False)))
    seen = Tags(html)
    assert not seen.tags & {"script", "img"}
    assert html.count("<mark>a</mark>") == 5 and html.count("same instruction") == 4
    for name, number in (("Train", 8), ("Test", 4), ("Dropped", 0)):
        assert f"<dt>{name}</dt><dd>{number}</dd>" in html
    assert "own.jsonl (open-ended)" in seen.text and kept.name not in seen.text


def test_a_bad_row_is_named_without_the_servers_path(tmp_path: Path, spt_home: Path) -> None:
    kept = uploads.keep(questions(tmp_path / "own.jsonl", last=""))
    with pytest.raises(UserError, match=r"^own\.jsonl, row at line 12 has no answer") as error:
        preview.read(RunSpec(benchmark=str(kept)))
    assert str(spt_home) not in str(error.value) and "row at line 12" in preview.problem_html(str(error.value))


def test_what_start_would_be_refused_for_is_said_by_the_files_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = uploads.keep(questions(tmp_path / "own.jsonl", last=""))
    with pytest.raises(UserError, match=r"^own\.jsonl, row at line 12"):
        preview.check(RunSpec(benchmark=str(kept)))
    with pytest.raises(UserError, match="There is no model"):
        preview.check(RunSpec(model="/nowhere"))
    monkeypatch.setattr(preview, "QUICK", 10)  # then by another process
    with pytest.raises(UserError, match=r"^own\.jsonl, row at line 12"):
        preview.check(RunSpec(benchmark=str(kept)))
    preview.check(RunSpec(benchmark=str(questions(tmp_path / "good.jsonl"))))


def test_rows_that_are_not_quick_are_read_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = questions(tmp_path / "good.jsonl"), questions(tmp_path / "bad.jsonl", last="")
    here = preview.read(RunSpec(benchmark=str(good)))
    monkeypatch.setattr(preview, "QUICK", 10)
    assert preview.read(RunSpec(benchmark=str(good))) == here
    with pytest.raises(UserError, match="row at line 12"):
        preview.read(RunSpec(benchmark=str(bad)))


@pytest.mark.parametrize(
    "setting",
    [{"benchmark": "/etc/hosts.csv"}, {"benchmark": "../x.jsonl"}, {"benchmark": "lm_eval:/etc/task.yaml"},
     {"model": "/models/private"}, {"model": "~/model"}, {"data_dir": "/etc"}],
)  # fmt: skip
def test_no_paths_from_elsewhere(setting: dict[str, str]) -> None:
    with pytest.raises(UserError, match="reached from elsewhere"):
        form.to_spec(values(**setting), local=False)
    form.to_spec(values(**setting), local=True)


def test_names_are_allowed_from_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPT_DATA_DIR", str(tmp_path))
    assert form.to_spec(values(benchmark="gsm8k"), local=False).data_dir == str(tmp_path)
    assert form.to_spec(values(benchmark="lm_eval:arc_easy"), local=False).benchmark == "lm_eval:arc_easy"


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("some.where", False)],
)
def test_which_hosts_are_this_machine_alone(host: str, local: bool) -> None:
    assert uploads.is_loopback(host) is local


def test_the_chosen_file_goes_by_its_own_name(tmp_path: Path) -> None:
    kept = str(uploads.keep(questions(tmp_path / "own.jsonl")))
    assert form.benchmarks(kept)[0] == ("Your file · own.jsonl", kept)
    names = [name for _, name in form.benchmarks()]
    assert names[0] == "capitals" and names.index("gsm8k") > names.index("arithmetic")


def test_a_judge_by_the_form_or_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judging.settings(" m ", "", local=True) == {"model": "m", "base_url": None}
    for url in ("http://me:key@x/v1", "http://x/v1?key=1"):
        with pytest.raises(UserError, match="must hold no key"):
            judging.settings("m", url, local=True)
    with pytest.raises(UserError, match="must be a web address"):
        judging.settings("m", "ftp://x", local=True)
    with pytest.raises(UserError, match="Which model"):
        judging.settings("", "http://x/v1", local=True)
    with pytest.raises(UserError, match="has no judge"):
        judging.settings("m", "http://evil/v1", local=False)
    monkeypatch.setenv("SPT_JUDGE_MODEL", "own")
    monkeypatch.setenv("SPT_JUDGE_URL", "http://here/v1")
    assert judging.settings("m", "http://evil/v1", local=False) == {"model": "own", "base_url": "http://here/v1"}


def test_previews_import_no_torch() -> None:
    code = (
        "import sys; from spt.ui import preview; from spt.spec import RunSpec\n"
        "preview.read(RunSpec(benchmark='capitals-mc')); print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
