"""Answer formats: how a target looks, where an answer ends, whether it is in form, and whether it is right.

| format      | target              | answer ends                             | in form                                |
|-------------|---------------------|-----------------------------------------|----------------------------------------|
| OptionCopy  | `A. Paris`          | with the first non-empty line           | equal to one of the options shown      |
| HashAnswer  | `...\\n#### 16`     | with the first complete `#### ` line    | `####` once, on the last line          |
| ShortPhrase | `Marie Curie`       | with the first non-empty line           | one line, a bare phrase                |
| Boxed       | `... \\boxed{16}`   | with the line that closes a `\\boxed{}` | one `\\boxed{...}`, on the last line   |
| Pattern     | the user's template | with the line that completes a match    | the user's regular expression matches  |

All formats also end an answer at the next `Question:`. A line is complete once its newline is there. `Stops` puts the
stop strings of an lm-evaluation-harness task in place of these rules.
Two things hold for every response: exact match implies in form; in open formats exact match implies knowledge.
"""

from spt.benchmarks.formats.base import AnswerFormat
from spt.benchmarks.formats.boxed import Boxed
from spt.benchmarks.formats.hash_answer import HashAnswer
from spt.benchmarks.formats.option_copy import OptionCopy
from spt.benchmarks.formats.pattern import Pattern
from spt.benchmarks.formats.short_phrase import ShortPhrase
from spt.benchmarks.formats.stops import Stops

__all__ = ["AnswerFormat", "Boxed", "HashAnswer", "OptionCopy", "Pattern", "ShortPhrase", "Stops"]
