"""The ZIP of a run: what is in it, that its tables are the stored answers, and that no cell of it runs as a formula."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest

from spt.export import FIELDS, JUDGED, harmless, zip_run
from spt.metrics import Prediction
from spt.report import html_report
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from tests.whole import plainly, whole_run

OPEN = RunSpec(items=8, steps=4, probe_every=2, seeds=2, control=("shuffled",))
CLOSED = RunSpec(benchmark="capitals-mc", items=8, steps=4, probe_every=0)
ALWAYS = {
    "README.txt", "command.txt", "predictions.csv", "predictions.parquet", "report.html", "result.json", "spec.json",
}  # fmt: skip
PROMPT = ("adapter_config.json", "adapter_model.safetensors", "spt.json")


def zipped(folder: RunFolder) -> zipfile.ZipFile:
    file = io.BytesIO()
    zip_run(folder, file)
    return zipfile.ZipFile(file)


def table(archive: zipfile.ZipFile) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(archive.read("predictions.csv").decode(), newline="")))


def test_the_zip_holds_lora() -> None:
    folder = whole_run(RunSpec(items=4, steps=2, method=("lora",)))
    archive = zipped(folder)
    assert {f"lora/{name}" for name in PROMPT} < set(archive.namelist())
    assert archive.read("lora/spt.json") == (folder.lora / "spt.json").read_bytes()
    assert {row["method"] for row in table(archive)} == {"zero_shot", "few_shot", "soft_prompt", "lora"}


def test_the_zip_holds_everything_of_the_run() -> None:
    folder = whole_run(OPEN)
    archive = zipped(folder)
    assert archive.testzip() is None
    prompts = {f"{at}/{name}" for at in ("prompt", "prompts/seed-1", "prompts/shuffled") for name in PROMPT}
    assert set(archive.namelist()) == ALWAYS | prompts
    for name in (*prompts, "spec.json", "result.json"):
        assert archive.read(name) == (folder.path / name).read_bytes()
    assert archive.read("command.txt").decode().strip() == folder.spec.command()
    assert archive.read("report.html").decode() == html_report(folder)
    assert all(word in archive.read("README.txt").decode() for word in (folder.id, "seed-1", "formula", "PeftModel"))


@pytest.mark.parametrize("spec", [OPEN, CLOSED], ids=["open", "closed"])
@pytest.mark.parametrize("judged", [False, True], ids=["rule", "judge"])
def test_csv_and_parquet_are_the_stored_answers(spec: RunSpec, judged: bool) -> None:
    folder = whole_run(spec, judged=judged)
    archive = zipped(folder)
    stored = [(method, row) for method in spec.methods for row in folder.predictions(method)]
    parquet = pyarrow.parquet.read_table(io.BytesIO(archive.read("predictions.parquet"))).to_pylist()
    rows = table(archive)
    assert len(rows) == len(parquet) == len(stored) == 8 * len(spec.methods)
    assert list(rows[0]) == list(parquet[0]) == [*FIELDS, *(JUDGED if judged else ())]
    for line, typed, (method, row) in zip(rows, parquet, stored, strict=True):
        assert line["method"] == typed.pop("method") == method
        own = {name: typed[name] for name in Prediction.model_fields}
        assert Prediction.model_validate(own) == row
        assert json.loads(line["options"]) == list(row.options)
        assert json.loads(line["option_logprobs"]) == list(row.option_logprobs)
        assert line["knows"] == str(row.knows).lower()
        assert line["response"].removeprefix("'") == row.response
    if judged:
        assert [row["judge_correct"] for row in parquet[:3]] == [None, True, False]
        assert [row["judge_correct"] for row in rows[:3]] == ["", "true", "false"]
        assert rows[0]["judge_reply"] == "'=1+1" and parquet[0]["judge_reply"] == "=1+1"


def test_the_tables_have_every_field_of_an_answer() -> None:
    assert set(FIELDS) == {"method", *Prediction.model_fields}


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "\n=1", "-", "-1\n"]
)
def test_formulas_are_harmless(text: str) -> None:
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "x", "-5", "+3.25", "-1,000", "-1e-7", "1=1", "#### 72", "'=1"])
def test_other_text_is_unchanged(text: str) -> None:
    assert harmless(text) == text


def test_no_cell_of_the_csv_begins_like_a_formula() -> None:
    evil = ('=HYPERLINK("http://x","y")', "@a", "-1+1", "\t=1", 'a,"b"\r\n=2')
    archive = zipped(whole_run(OPEN, lambda method, i, item: evil[i % 5]))
    with io.StringIO(archive.read("predictions.csv").decode(), newline="") as text:
        cells = [cell for row in csv.reader(text) for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]
    assert '\'=HYPERLINK("http://x","y")' in cells and 'a,"b"\r\n=2' in cells


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = whole_run(OPEN, judged=True)
    zip_run(folder, tmp_path / "a.zip")
    for path in folder.path.rglob("*"):
        os.utime(path, (1, 1))
    zip_run(folder, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.zip", "b.zip"]


def test_what_cannot_be_exported_is_said_and_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "run.zip"
    target.write_text("old")
    with pytest.raises(UserError, match="is not finished"):
        zip_run(Store().create(RunSpec(seed=5)), target)
    folder = whole_run(CLOSED)
    (folder.path / "predictions" / "few_shot.jsonl").unlink()
    with pytest.raises(UserError, match="lacks answers of few_shot"):
        zip_run(folder, target)
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir() if p.is_file()] == ["run.zip"]
    whole = whole_run(OPEN)
    with pytest.raises(UserError, match="cannot be written: no such file"):
        zip_run(whole, tmp_path / "nowhere" / "run.zip")
    with pytest.raises(UserError, match="cannot be written: it is a folder"):
        zip_run(whole, tmp_path)


def test_a_run_that_changes_meanwhile_is_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = whole_run(CLOSED)
    result = folder.result()
    assert result is not None
    found = iter([result, result.model_copy(update={"device": "another"})])
    monkeypatch.setattr("spt.export.html_report", lambda folder: "")
    monkeypatch.setattr(RunFolder, "result", lambda self: next(found))
    with pytest.raises(UserError, match="was changed or deleted"):
        zip_run(folder, tmp_path / "run.zip")
    assert not (tmp_path / "run.zip").exists()


def test_a_prompt_from_the_zip_loads_with_peft(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from spt.events import PromptFiles
    from spt.prompt import Provenance, SoftPrompt

    folder, base = whole_run(CLOSED, plainly), AutoModelForCausalLM.from_pretrained(tiny("llama")).eval()
    vectors = torch.randn(3, base.config.hidden_size)
    made_by = Provenance(model="m", benchmark="b", position="[S]", chat_template=False, spec={}, versions={})
    folder.append(PromptFiles(SoftPrompt(vectors, made_by).files()))
    zipped(folder).extractall(tmp_path)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        embedded = torch.cat([vectors, base.get_input_embeddings()(ids)[0]])[None]
        ours = base(inputs_embeds=embedded).logits[:, -4:]
        theirs = PeftModel.from_pretrained(base, tmp_path / "prompt").eval()(input_ids=ids).logits[:, -4:]
    torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-5)
