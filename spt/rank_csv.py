"""A CSV of scores, as somebody else's table or one written by hand. Imports no torch.

    model,benchmark,method,score,n,kind,pair          # the first four columns, the others where they are known
    Qwen/Qwen3-0.6B-Base,gsm8k,soft_prompt,0.41,500,base,Qwen3 0.6B

Scores are shares, 0 to 1. `kind` (base or post-trained) and `pair` (one word for both of them) belong together.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spt.rank_choice import METRICS, Entry
from spt.spec import METHODS, UserError

COLUMNS = ("model", "benchmark", "method", "score")
FURTHER = ("n", "seed", "kind", "pair")


def read_csv(path: Path) -> list[Entry]:
    """The scores of a CSV. Raises UserError for the first thing that is wrong with it, with its line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from None
    rows = csv.DictReader(io.StringIO(text))
    columns = [(name or "").strip() for name in rows.fieldnames or ()]
    rows.fieldnames = columns
    _check_columns(path, columns)
    entries: list[Entry] = []
    lines: dict[tuple[str, ...], int] = {}
    for row in rows:
        entry = _row(f"{path}, line {rows.line_num}", row)
        key = (entry.model, entry.benchmark, entry.method, str(entry.seed))
        if key in lines:
            raise UserError(
                f"{path}, line {rows.line_num}: {entry.model} has a score on {entry.benchmark} with {entry.method} "
                f"already, on line {lines[key]}; remove one, or tell them apart in a column `seed`."
            )
        lines[key] = rows.line_num
        entries.append(entry)
    if not entries:
        raise UserError(f"{path} has no scores in it.")
    return entries


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    unknown = [name for name in columns if name not in (*COLUMNS, *FURTHER)]
    lacking = [name for name in COLUMNS if name not in columns]
    known = f"a CSV of scores has {', '.join(COLUMNS)}, and if you like {', '.join(FURTHER)}"
    if unknown or lacking:
        what = f"there is no column {unknown[0]!r}" if unknown else f"the column {lacking[0]!r} is missing"
        raise UserError(f"{path}: {what}; {known}.")
    if len(set(columns)) < len(columns):
        raise UserError(f"{path}: a column is there twice; {known}.")
    if ("kind" in columns) != ("pair" in columns):
        raise UserError(f"{path}: the columns kind and pair belong together; give both, or neither.")


def _row(where: str, row: Mapping[str | None, Any]) -> Entry:
    def cell(name: str) -> str:
        return str(row.get(name) or "").strip()

    if None in row:
        raise UserError(f"{where}: there are more cells than columns.")
    for name in COLUMNS:
        if not cell(name):
            raise UserError(f"{where}: {name} is empty.")
    method = cell("method").lower().replace("-", "_").replace(" ", "_")
    if method not in METHODS and not method.isidentifier():
        raise UserError(f"{where}: {cell('method')!r} is no method; write {', '.join(METHODS)} or lora.")
    score = _number(where, "score", cell("score"))
    if not 0 <= score <= 1:
        raise UserError(f"{where}: the score {cell('score')} is no share; write 0.41 for 41 %.")
    n = int(_number(where, "n", cell("n"))) if cell("n") else None
    if n is not None and n < 1:
        raise UserError(f"{where}: n = {n} is no number of items.")
    kind, pair = cell("kind").lower().replace("_", "-"), cell("pair")
    if pair and kind not in ("base", "post-trained"):
        raise UserError(f"{where}: kind = {cell('kind')!r}; write base or post-trained.")
    return Entry(
        model=cell("model"), benchmark=cell("benchmark"), method=method, n=n,
        seed=int(_number(where, "seed", cell("seed"))) if cell("seed") else 0,
        rates=dict.fromkeys(METRICS, score), twins=(pair, kind) if pair else None,
    )  # fmt: skip


def _number(where: str, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{where}: {name} = {text!r} is no number.") from None
