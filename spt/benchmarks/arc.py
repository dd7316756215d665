"""arc_easy and arc_challenge: science questions from school exams. Closed, option copy.

A row in the hub's shape, the same in both sets (this one was made up):
    {"id": "X_1", "question": "Which of these melts first in the sun?", "answerKey": "2",
     "choices": {"text": ["a stone", "an ice cube", "a nail"], "label": ["1", "2", "3"]}}
Options: `A. a stone`, `B. an ice cube`, `C. a nail`   Target: `B. an ice cube`

Rows have three to five options, and keys that are letters or numbers; here all get letters.

On the hub: allenai/ai2_arc, configs `ARC-Easy` (2,251 train, 2,376 test) and `ARC-Challenge` (1,119 train, 1,172 test).
Source: Clark et al. 2018, arXiv:1803.05457.   Licence: CC BY-SA 4.0.
"""

from __future__ import annotations

from pathlib import Path

from spt.benchmarks.base import Benchmark, HubSet, Split
from spt.benchmarks.formats import OptionCopy
from spt.benchmarks.hub_rows import COPY_INSTRUCTION, choices_row, load

COMMIT = "210d026faf9955653af8916fad021475a3f00453"
FORMAT = OptionCopy(max_new_tokens=64)


def _benchmark(name: str, title: str, config: str) -> Benchmark:
    hub = HubSet("allenai/ai2_arc", config, COMMIT, train="train", test="test")

    def read(data_dir: Path | None) -> Split:
        return load(hub, data_dir, FORMAT, choices_row)

    return Benchmark(
        name=name,
        title=title,
        format=FORMAT,
        instruction=COPY_INSTRUCTION,
        source=f"allenai/ai2_arc, {config} (Clark et al. 2018)",
        licence="CC BY-SA 4.0",
        read=read,
        hub=hub,
    )


ARC_EASY = _benchmark("arc_easy", "ARC-Easy: school science (multiple choice)", "ARC-Easy")
ARC_CHALLENGE = _benchmark("arc_challenge", "ARC-Challenge: school science (multiple choice)", "ARC-Challenge")
