"""How questions and worked examples are laid out as plain text. Prompts and previews both take it from here.

instruction ⏎⏎ Question: … ⏎ A. … ⏎ Answer: target ⏎⏎ Question: … ⏎ A. … ⏎ Answer:
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spt.benchmarks.base import Benchmark, Example


@dataclass(frozen=True)
class Layout:
    """The parts around a question. The defaults are spt's own; a harness task writes its questions itself."""

    before_question: str = "Question: "
    list_options: bool = True  # on lines of their own, under the question
    cue: str = "\nAnswer:"  # in a chat the assistant's turn takes its place
    before_answer: str = " "
    after_instruction: str = "\n\n"
    between: str = "\n\n"  # worked examples

    def question(self, example: Example) -> str:
        """The question as every method shows it, without the cue."""
        options = example.options if self.list_options else ()
        return "\n".join((f"{self.before_question}{example.question}", *options))

    def instruction(self, benchmark: Benchmark) -> str:
        """The instruction and what parts it from the question; empty where the benchmark has none."""
        return f"{benchmark.instruction}{self.after_instruction}" if benchmark.instruction else ""

    def prompt(self, example: Example, shots: Sequence[Example] = ()) -> str:
        """Worked examples and the question, up to where the answer begins."""
        worked = [f"{self.prompt(shot)}{self.before_answer}{shot.target}{self.between}" for shot in shots]
        return "".join((*worked, self.question(example), self.cue))
