"""Scores to rank, from run folders, `result.json` files, folders of those, the store, or a CSV. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from spt.events import Probe
from spt.rank_choice import METRICS, Entry, Found, Outcomes
from spt.rank_csv import read_csv
from spt.run_files import check_schema, damaged, parse_json, read_spec, read_text
from spt.spec import TUNED_ITEMS, Method, RunSpec, UserError
from spt.store import RunFolder, Store

# Settings by which runs may differ and still be compared: what they are about, and what changes no score.
_FREE = {
    "model", "revision", "benchmark", "seed", "seeds", "control", "probe_every", "probe_items", "data_dir",
}  # fmt: skip
# How a model is run, which a grid may choose for each.
_OF_MODEL = ("precision", "chat_template")
_DEFAULTS = {
    name: field.default for name, field in RunSpec.model_fields.items() if name not in {*_FREE, *_OF_MODEL}
}  # fmt: skip
MOST_PROBES = 500  # of a run
_CONTROLS = {"shuffled", "valid-format", TUNED_ITEMS}


class Reader:
    """Reads sources; results and answers that it has read before it reads again only when they have changed."""

    def __init__(self) -> None:
        self._results: dict[Path, tuple[tuple[int, int], tuple[Entry, ...] | UserError]] = {}
        self._outcomes: dict[tuple[Path, Method], tuple[float, Outcomes | None]] = {}
        self._probes: dict[Path, tuple[float, tuple[Probe, ...]]] = {}
        self._ids: dict[tuple[str, ...], tuple[str, ...]] = {}  # runs of a benchmark share one

    def read(self, sources: Sequence[str] = ()) -> Found:
        """The scores of all sources; without one, of the store.

        Raises UserError for a source that is none; what is wrong inside a folder of many is a note.
        """
        entries: list[Entry] = []
        notes: list[str] = []
        for source in sources:
            path = Path(source).expanduser()
            if path.is_dir() and not any((path / name).is_file() for name in ("spec.json", "result.json")):
                self._folder(path, entries, notes)
            elif path.suffix == ".csv":
                entries += read_csv(path)
            elif path.exists():
                entries += self._result(path / "result.json" if path.is_dir() else path)
            else:
                entries += self._result(Store().get(source).path / "result.json")
        if not sources:
            self._folder(Store().root, entries, notes)
        return Found(tuple(entries), tuple(notes))

    def _folder(self, folder: Path, entries: list[Entry], notes: list[str]) -> None:
        """A folder of run folders, of `result.json` files under any name, and of CSVs."""
        before = len(entries)
        for name in sorted(os.listdir(folder)) if folder.is_dir() else []:
            path = folder / name
            if name.startswith("."):
                continue
            if path.suffix == ".csv":
                entries += read_csv(path)
                continue
            result = path if path.suffix == ".json" else path / "result.json"
            try:
                entries += self._result(result)
            except UserError as error:
                if result.exists():  # a run that is not finished has none
                    notes.append(str(error))
        if len(entries) == before and not notes and folder != Store().root:
            raise UserError(f"{folder} holds no finished run, no result.json and no CSV of scores.")

    def _result(self, path: Path) -> tuple[Entry, ...]:
        try:
            stat = path.stat()
        except OSError:
            raise UserError(f"{path.parent} has no result.json: only finished runs can be ranked.") from None
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._results.get(path)
        if known is None or known[0] != stamp:
            try:
                known = (stamp, tuple(_entries(path, stat.st_mtime)))
            except UserError as error:
                known = (stamp, error)
            self._results[path] = known
        if isinstance(known[1], UserError):
            raise known[1]
        return known[1]

    def outcomes(self, entry: Entry) -> Outcomes | None:
        """Which items were right; None where the answers are not there or are not those of the result."""
        if entry.folder is None:
            return None
        key = (entry.folder, entry.arm)
        known = self._outcomes.get(key)
        if known is None or known[0] != entry.changed:
            known = self._outcomes[key] = (entry.changed, self._read_outcomes(entry, entry.folder))
        return known[1]

    def probes(self, entry: Entry) -> tuple[Probe, ...]:
        """How the soft prompt of a run did from step to step, by step; empty where it was not looked at."""
        if entry.folder is None:
            return ()
        known = self._probes.get(entry.folder)
        if known is None or known[0] != entry.changed:
            try:
                found = RunFolder(entry.folder, read_spec(entry.folder / "spec.json")).curves(MOST_PROBES)[1]
            except UserError:
                found = []
            by_step = {probe.step: probe for probe in found}  # a resumed run makes some a second time
            probes = tuple(by_step[step].model_copy(update={"answers": ()}) for step in sorted(by_step))
            known = self._probes[entry.folder] = (entry.changed, probes)
        return known[1]

    def _read_outcomes(self, entry: Entry, path: Path) -> Outcomes | None:
        try:
            folder = RunFolder(path, read_spec(path / "spec.json"))
        except UserError:
            return None
        rows = sorted(folder.predictions(entry.arm), key=lambda row: row.id)
        if not rows:
            return None
        ids = tuple(row.id for row in rows)
        right = {
            "exact_match": np.array([row.exact_match for row in rows]),
            "knowledge": np.array([row.knows for row in rows]),
            "format": np.array([row.in_format for row in rows]),
        }
        if entry.judged:  # where it gave no verdict, the rule's stands
            said = {row.id: row.correct for row in folder.verdicts(entry.arm) if row.correct is not None}
            right["knowledge"] = np.array([said.get(row.id, row.knows) for row in rows])
        if any(abs(right[metric].mean() - entry.rates[metric]) > 1e-6 for metric in METRICS):
            return None
        return Outcomes(self._ids.setdefault(ids, ids), {metric: right[metric] for metric in METRICS})


def _entries(path: Path, changed: float) -> Iterator[Entry]:
    """The methods of one `result.json`. Only what is ranked is looked at: of ten thousand runs, this takes seconds."""
    content = parse_json(path, read_text(path))
    check_schema(path.parent.name if path.name == "result.json" else path.stem, content)
    try:
        spec, run = content["spec"], str(content["run"])
        model = spec["model"] if spec["revision"] is None else f"{spec['model']}@{spec['revision']}"
        settings = tuple((name, str(spec.get(name, default))) for name, default in _DEFAULTS.items())
        variant = tuple((name, str(spec.get(name, RunSpec.model_fields[name].default))) for name in _OF_MODEL)
        closed = bool(content["benchmark"].get("closed", False))
        folder = path.parent if (path.parent / "spec.json").is_file() else None
        for arm, scores in content["methods"].items():
            if arm in _CONTROLS:
                continue
            seeds = arm.startswith("seed-")
            judge = scores.get("judge")
            rates = {metric: float(scores[metric]["rate"]) for metric in METRICS}
            if judge is not None:
                rates["knowledge"] = float(judge["knowledge"]["rate"])
            yield Entry(
                model=str(model), benchmark=str(spec["benchmark"]), method="soft_prompt" if seeds else str(arm),
                seed=int(arm.removeprefix("seed-")) if seeds else int(spec["seed"]), rates=rates,
                n=int(scores["exact_match"]["n"]), settings=settings, variant=variant, arm=str(arm), run=run,
                folder=folder, changed=changed, judged=judge is not None, closed=closed,
            )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(damaged(path)) from error
