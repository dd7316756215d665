"""Reads bundled benchmark files (`assets/benchmarks/*.jsonl`) and checks each row against its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from spt.spec import UserError

FOLDER = Path(__file__).parents[2] / "assets" / "benchmarks"


class AssetRow(BaseModel):
    """What every row of a bundled file has."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    split: Literal["train", "test"]


Row = TypeVar("Row", bound=AssetRow)


def read_rows(file_name: str, schema: type[Row]) -> list[Row]:
    """All rows of a bundled file, in order. Raises UserError if it is missing or a row is not as it should be."""
    path = FOLDER / file_name
    if not path.is_file():
        raise UserError(f"The bundled benchmark file {path} is missing: run from a full copy of the repository.")
    rows: list[Row] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            rows.append(schema.model_validate_json(line))
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"]) or "row"
            raise UserError(f"{path}, line {number}: {where}: {problem['msg'].lower()}; restore the file.") from None
    return rows
