"""What a run would be refused for, as far as it can be known within a second: without torch, and without the network.

The command line and the page ask before anything is made, loaded or waited for, also while another run has the device.
What is checked here is decided elsewhere, in the very functions that the run itself goes through.
"""

from __future__ import annotations

from spt import benchmarks, model_files
from spt.prompting import choose_shots
from spt.spec import RunSpec


def preflight(spec: RunSpec) -> None:
    """Raises UserError as the run itself would: for its model's name and files, and for rows that lie here."""
    model_files.check(spec.model, spec.revision, spec.precision)
    if benchmarks.rows_are_here(spec):
        _, split = benchmarks.load(spec)
        choose_shots(split.train, spec.shots, spec.seed)
    else:
        benchmarks.check_source(spec)
