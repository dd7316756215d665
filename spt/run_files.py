"""Reading the JSON files of a run folder; whatever is wrong with one is told in one sentence. Imports no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spt.events import SCHEMA
from spt.spec import RunSpec, UserError


def damaged(path: Path) -> str:
    """One sentence on a file that is not what it should be."""
    return f"{path} is damaged and cannot be read; remove its run folder, or run it again from the start (--again)."


def read_text(path: Path) -> str:
    """The text of a file. Raises UserError where it cannot be read."""
    try:
        return path.read_text()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); make it readable, or remove its folder.") from error
    except UnicodeDecodeError as error:
        raise UserError(damaged(path)) from error


def parse_json(path: Path, text: str) -> Any:
    """The content of a JSON file. Raises UserError for a damaged one."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(damaged(path)) from error


def check_schema(run_id: str, content: Any) -> None:
    """Raises UserError for a file of another version."""
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise UserError(
            f"Run folder {run_id} was written by another version of spt (schema {schema}, this one reads {SCHEMA}); "
            "use that version, or remove the folder and run again."
        )


def read_spec(path: Path) -> RunSpec:
    """The spec in `spec.json`. Raises UserError where it cannot be read."""
    content = parse_json(path, read_text(path))
    check_schema(path.parent.name, content)
    try:
        return RunSpec(**content["spec"])
    except (ValidationError, KeyError, TypeError) as error:
        raise UserError(damaged(path)) from error
