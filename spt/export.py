"""A finished run as one ZIP: the prompt, the result, every answer as a table, and the report. Imports no torch.

The same run gives the same bytes: names are sorted, times are fixed, and nothing of this machine is written that is not
in the run. Answers go through row by row, so a run of many items needs no more memory than one method's answers.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

from spt.events import Result
from spt.files import replacing
from spt.report import html_report
from spt.spec import Method, UserError
from spt.store import RunFolder

FIELDS = (
    "method", "id", "topic", "question", "options", "target", "answer", "aliases", "response", "in_format", "knows",
    "exact_match", "stopped_by", "option_logprobs",
)  # fmt: skip
JUDGED = ("judge_correct", "judge_in_format", "judge_reply")  # only where a judge was asked
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP can hold
ROW_GROUP = 1000  # rows of the Parquet file that are held at a time

_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")

README = """\
{run}
{underline}

A run of spt (soft-prompt tuning for fair benchmark evaluation, arXiv:2606.12117), {version}.

report.html           the result with charts and answers; opens in any browser, without a network, and prints
result.json           every score, interval, test and finding
spec.json             every setting of the run
command.txt           the command that repeats the run
predictions.csv       every answer: one row a method and item, UTF-8
predictions.parquet   the same rows with their types: options and aliases as lists of texts, log-likelihoods as numbers
prompt/               the tuned soft prompt, a PEFT adapter; spt.json says what it was tuned on and where it stands
prompts/              those of further seeds and controls, where there were any
lora/                 the LoRA weights that it was compared with, where it was: a PEFT adapter too

predictions.csv
  options, aliases and option_logprobs are JSON lists; in_format, knows, exact_match and the judge's two are true or
  false, and a judge's are empty where its reply was no verdict. Methods: {methods}.
  A text that begins with = + - @ tab or a line break could be run as a formula by a spreadsheet, so a ' stands before
  it. Texts that are plain numbers, such as -5, are left as they are. predictions.parquet has all texts unchanged.

prompt/
  from peft import PeftModel
  model = PeftModel.from_pretrained(base_model, "prompt")
  PEFT puts the vectors before the whole input; spt.json says where they were tuned to stand.

Paths in spec.json and command.txt are those of the machine that made the run.
"""


def zip_run(folder: RunFolder, target: str | Path | BinaryIO) -> None:
    """Write a finished run as a ZIP to a path, old or new but never half, or into an open binary file.

    Raises UserError where the run is not finished, has lost its answers, or the file cannot be written.
    """
    result = folder.result()
    if result is None:
        raise UserError(f"Run {folder.id} is not finished, so there is nothing to export yet.")
    if isinstance(target, str | Path):
        with replacing(Path(target)) as file:
            _write(folder, result, file)
    else:
        _write(folder, result, target)


def _write(folder: RunFolder, result: Result, file: BinaryIO) -> None:
    methods = [method for method in folder.spec.methods if method in result.methods]
    prompts = sorted(
        path for pattern in ("prompt*/**/*", "lora/*") for path in folder.path.glob(pattern) if path.is_file()
    )
    try:
        stored = {path.relative_to(folder.path).as_posix(): path.read_bytes() for path in prompts}
        stored |= {name: (folder.path / name).read_bytes() for name in ("result.json", "spec.json")}
    except FileNotFoundError:
        raise UserError(_changed(folder)) from None
    stored["command.txt"] = f"{folder.spec.command()}\n".encode()
    stored["README.txt"] = _readme(folder, result, methods).encode()
    stored["report.html"] = html_report(folder).encode()
    with zipfile.ZipFile(file, "w") as archive:
        for name in sorted(stored):
            with _entry(archive, name) as out:
                out.write(stored[name])
        with _entry(archive, "predictions.csv") as out:
            _write_csv(out, _rows(folder, result, methods), _fields(result))
        with tempfile.TemporaryFile() as parquet, _entry(archive, "predictions.parquet") as out:
            _write_parquet(parquet, _rows(folder, result, methods), result)  # seeks, which a ZIP's entry cannot
            parquet.seek(0)
            while block := parquet.read(1 << 20):
                out.write(block)
        if folder.result() != result:
            raise UserError(_changed(folder))


def _changed(folder: RunFolder) -> str:
    return f"Run {folder.id} was changed or deleted while it was exported; export it again."


@contextmanager
def _entry(archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    info = zipfile.ZipInfo(name, LONG_AGO)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3  # Unix, also where it is made on another system
    info.external_attr = 0o100644 << 16
    with archive.open(info, "w", force_zip64=True) as out:
        yield out


def _readme(folder: RunFolder, result: Result, methods: Sequence[Method]) -> str:
    return README.format(
        run=folder.id,
        underline="-" * len(folder.id),
        version=f"schema {result.schema_}",
        methods=", ".join(methods),
    )


# ---- rows


def _fields(result: Result) -> tuple[str, ...]:
    return FIELDS + JUDGED if result.judge is not None else FIELDS


def _rows(folder: RunFolder, result: Result, methods: Sequence[Method]) -> Iterator[dict[str, Any]]:
    """Every answer, method by method. Raises UserError for a method whose answers are not all there."""
    for method in methods:
        rows = folder.predictions(method)
        if len(rows) != result.methods[method].format.n:
            raise UserError(f"Run {folder.id} lacks answers of {method}: the run with --again makes them anew.")
        verdicts = {verdict.id: verdict for verdict in folder.verdicts(method)} if result.judge is not None else {}
        for row in rows:
            fields = {"method": method, **row.model_dump()}
            if result.judge is not None:
                verdict = verdicts.get(row.id)
                fields |= {
                    "judge_correct": verdict.correct if verdict else None,
                    "judge_in_format": verdict.in_format if verdict else None,
                    "judge_reply": verdict.reply if verdict else None,
                }
            yield fields


def harmless(text: str) -> str:
    """A text that no spreadsheet runs as a formula. A text that is a plain number, such as -5, stays one."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return json.dumps(value, ensure_ascii=False)  # begins with a bracket: no formula
    return harmless(str(value))


def _write_csv(out: IO[bytes], rows: Iterator[Mapping[str, Any]], fields: Sequence[str]) -> None:
    with io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=False) as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(fields)
        for row in rows:
            writer.writerow([_cell(row[name]) for name in fields])


def _write_parquet(out: IO[bytes], rows: Iterator[Mapping[str, Any]], result: Result) -> None:
    import pyarrow as pa  # here, since importing it takes longer than the command line needs to answer
    from pyarrow import parquet

    special: dict[str, Any] = {
        "options": pa.list_(pa.string()), "aliases": pa.list_(pa.string()), "option_logprobs": pa.list_(pa.float64()),
        **dict.fromkeys(("in_format", "knows", "exact_match", "judge_correct", "judge_in_format"), pa.bool_()),
    }  # fmt: skip
    schema = pa.schema([(name, special.get(name, pa.string())) for name in _fields(result)])
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        while group := list(islice(rows, ROW_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))


