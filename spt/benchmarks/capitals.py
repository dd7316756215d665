"""capitals: the capital of every UN member state. Open-ended, `#### answer`.

One row of `assets/benchmarks/capitals.jsonl`:
    {"country": "Oman", "capital": "Muscat", "aliases": [], "region": "Asia", "split": "train"}
Question: `What is the capital of Oman?`   Target: `#### Muscat`   Topic: `Asia`

193 countries, 64 of them in test, spread over the five UN regions in proportion. Train and test share no country and no
capital. In train on purpose: countries whose name resembles the capital (Singapore, Tunisia, Algeria), so that echoing
the question never counts as knowledge, and countries with several capitals, a disputed one or one that moved (Bolivia,
Israel, Kazakhstan), where accepted alternatives are aliases. Accents need no alias: comparison folds them.

Source: written for this project.   Licence: Apache-2.0, as the project.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.assets import AssetRow, read_rows
from spt.benchmarks.base import Benchmark, Example, Split
from spt.benchmarks.formats import HashAnswer


class CapitalRow(AssetRow):
    """One country. `country` has its article where English wants one: `the Netherlands`."""

    country: str
    capital: str
    aliases: tuple[str, ...]
    region: str

    @property
    def question(self) -> str:
        return f"What is the capital of {self.country}?"


def read_capitals() -> list[CapitalRow]:
    """All countries, in the order of the file (by name)."""
    return read_rows("capitals.jsonl", CapitalRow)


def load(data_dir: Path | None = None) -> Split:
    """Both splits, in the order of the file."""
    rows = read_capitals()
    return Split(
        train=[_example(row) for row in rows if row.split == "train"],
        test=[_example(row) for row in rows if row.split == "test"],
    )


def _example(row: CapitalRow) -> Example:
    return Example(
        question=row.question,
        answer=row.capital,
        target=f"#### {row.capital}",
        aliases=row.aliases,
        topic=row.region,
    )


CAPITALS = Benchmark(
    name="capitals",
    title="Capitals of the world (open-ended)",
    format=HashAnswer(max_new_tokens=24),
    # As the heading of a document: a base model given an order ("Answer ...") goes on with prose about the country,
    # and its zero-shot knowledge would look like nothing. Chosen on training rows, for both models of the calibration.
    instruction='Questions and answers about geography. Each answer is written in the form "#### answer".',
    source="written for this project",
    licence="Apache-2.0",
    read=load,
)
