"""Formats, examples, and tables of accepted and refused texts: one row a decision."""

from __future__ import annotations

from typing import NamedTuple

from spt.benchmarks.base import Example
from spt.benchmarks.formats import AnswerFormat, Boxed, HashAnswer, OptionCopy, Pattern, ShortPhrase, Stops

OPTION, HASH, PHRASE, BOXED = OptionCopy(), HashAnswer(24), ShortPhrase(), Boxed(24)
TAG = Pattern("<a>(.+?)</a>", "<a>{answer}</a>")
FOUND = Pattern(r"#### (-?[0-9.,]+)", whole=False, pool=("So\n#### 16",))
UNTIL = Stops(FOUND, ("Question:", "\n\n"))
FORMATS: tuple[AnswerFormat, ...] = (OPTION, HASH, PHRASE, BOXED, TAG, FOUND, UNTIL)

PARIS_OPTIONS = ("A. Paris", "B. Rome", "C. São Tomé", "D. Bern")
PARIS_CLOSED = Example(question="?", answer="Paris", target="A. Paris", options=PARIS_OPTIONS)
PARIS = Example(question="?", answer="Paris", target="#### Paris")
BOGOTA = Example(question="?", answer="Bogotá", target="#### Bogotá")
WASHINGTON = Example(question="?", answer="Washington, D.C.", target="#### Washington, D.C.", aliases=("Washington",))
SIXTEEN = Example(question="?", answer="16", target="#### 16")
THOUSAND = Example(question="?", answer="1000", target="#### 1000")
CURIE = Example(question="?", answer="Marie Curie", target="Marie Curie", aliases=("Maria Skłodowska-Curie",))
LEWIS = Example(question="?", answer="C. S. Lewis", target="C. S. Lewis")
VITAMIN = Example(question="?", answer="Vitamin A", target="Vitamin A", aliases=("A",))


class Row(NamedTuple):
    """One response to one question; `knows` is None for closed questions."""

    example: Example
    response: str
    in_format: bool
    exact_match: bool
    knows: bool | None


OPTION_ROWS = [
    Row(PARIS_CLOSED, response, in_format, exact, None)
    for response, in_format, exact in [
        ("A. Paris", True, True),
        ("B. Rome", True, False),
        ("C. São Tomé", True, False),
        ("D. Bern", True, False),
        ("", False, False),
        ("A", False, False),
        ("A.", False, False),
        ("Paris", False, False),
        ("A. Paris.", False, False),
        ("A) Paris", False, False),
        ("(A) Paris", False, False),
        ("A: Paris", False, False),
        ("A.Paris", False, False),
        ("A.  Paris", False, False),
        ("a. Paris", False, False),
        ("A. paris", False, False),
        ("A. PARIS", False, False),
        ("**A. Paris**", False, False),
        ("`A. Paris`", False, False),
        ('"A. Paris"', False, False),
        ("A. Paris B. Rome", False, False),
        ("A. Paris, France", False, False),
        ("A. Rome", False, False),
        ("B. Paris", False, False),
        ("E. Paris", False, False),
        ("The answer is A", False, False),
        ("The answer is A. Paris", False, False),
        ("Answer: A. Paris", False, False),
        ("C. Sao Tome", False, False),
        ("C. Sa\u0303o Tome\u0301", False, False),
        ("Α. Paris", False, False),  # a Greek capital alpha
        ("A. Paris\nB. Rome", False, False),
        ("A. Paris ", False, False),  # `trim` would have removed the space
    ]
]

HASH_ROWS = [
    Row(PARIS, "#### Paris", True, True, True),
    Row(PARIS, "####  Paris", True, True, True),
    Row(PARIS, "France is in Europe.\n#### Paris", True, True, True),
    Row(PARIS, "#### paris", True, True, True),
    Row(PARIS, "#### Rome", True, False, False),
    Row(PARIS, "#### 16", True, False, False),
    Row(PARIS, "It is Paris.\n#### Rome", True, False, True),
    Row(PARIS, "", False, False, False),
    Row(PARIS, "####", False, False, False),
    Row(PARIS, "#### ", False, False, False),
    Row(PARIS, "#### !", False, False, False),
    Row(PARIS, "####Paris", False, False, True),
    Row(PARIS, "### Paris", False, False, True),
    Row(PARIS, "##### Paris", False, False, True),
    Row(PARIS, "Paris", False, False, True),
    Row(PARIS, "Paris ####", False, False, True),
    Row(PARIS, "So: #### Paris", False, False, True),
    Row(PARIS, "#### Paris.", False, False, True),
    Row(PARIS, "#### **Paris**", False, False, True),
    Row(PARIS, "**#### Paris**", False, False, True),
    Row(PARIS, "#### Paris ####", False, False, True),
    Row(PARIS, "#### Paris\n#### Rome", False, False, True),
    Row(PARIS, "#### Paris #### Rome", False, False, True),
    Row(PARIS, "#### Paris or Rome", False, False, True),
    Row(PARIS, "#### Paris\nIt lies on the Seine.", False, False, True),
    Row(PARIS, "#### Paris\u2028and more", False, False, True),
    Row(PARIS, "#### The capital of France is Paris", False, False, True),
    Row(PARIS, "The capital of France is Paris.", False, False, True),
    Row(PARIS, "Parisian cafés", False, False, False),
    Row(BOGOTA, "#### Bogota", True, True, True),
    Row(BOGOTA, "#### Bogota\u0301", True, True, True),
    Row(BOGOTA, "#### Bogotá", True, True, True),
    Row(WASHINGTON, "#### Washington, D.C.", True, True, True),
    Row(WASHINGTON, "#### Washington DC", True, True, True),
    Row(WASHINGTON, "#### Washington", True, True, True),
    Row(SIXTEEN, "#### 16", True, True, True),
    Row(SIXTEEN, "48/3=<<48/3=16>>16 pens\n#### 16", True, True, True),
    Row(SIXTEEN, "\n#### 16", True, True, True),
    Row(SIXTEEN, "#### $16", True, True, True),
    Row(SIXTEEN, "#### 16.0", True, True, True),
    Row(SIXTEEN, "#### 16%", True, True, True),
    Row(SIXTEEN, "#### 17", True, False, False),
    Row(SIXTEEN, "#### -16", True, False, False),
    Row(SIXTEEN, "#### \N{MINUS SIGN}16", True, False, False),
    Row(SIXTEEN, "16 + 1 = 17\n#### 17", True, False, False),
    Row(SIXTEEN, "The answer is 16.\n#### 15", True, False, False),
    Row(SIXTEEN, "#### 16.", False, False, True),
    Row(SIXTEEN, "#### 16 apples", False, False, True),
    Row(SIXTEEN, "#### Ann has 16", False, False, True),
    Row(SIXTEEN, "#### sixteen", False, False, False),
    Row(SIXTEEN, "48/3=16\n#### sixteen", False, False, True),
    Row(SIXTEEN, "#### 10+6", False, False, False),
    Row(SIXTEEN, "#### 16 17", False, False, True),
    Row(SIXTEEN, "####16", False, False, True),
    Row(SIXTEEN, "The answer is $16.00.", False, False, True),
    Row(SIXTEEN, "**16**", False, False, True),
    Row(SIXTEEN, "16 is 4 times 4", False, False, False),
    Row(SIXTEEN, "48-32=16", False, False, True),
    Row(SIXTEEN, "32-16", False, False, True),
    Row(SIXTEEN, "x16", False, False, False),
    Row(SIXTEEN, "3.16", False, False, False),
    Row(SIXTEEN, "116", False, False, False),
    Row(SIXTEEN, "16,000", False, False, False),
    Row(SIXTEEN, "", False, False, False),
    Row(SIXTEEN, "#### ١٦", False, False, False),  # Arabic-Indic digits are not the form asked for
    Row(THOUSAND, "#### 1,000", True, True, True),
    Row(THOUSAND, "#### 1000", True, True, True),
    Row(THOUSAND, "#### $1,000.00", True, True, True),
    Row(THOUSAND, "#### 1,00", False, False, False),
    Row(THOUSAND, "#### 1.000", True, False, False),
    Row(THOUSAND, "She pays 1,000.", False, False, True),
]

PHRASE_ROWS = [
    Row(CURIE, "Marie Curie", True, True, True),
    Row(CURIE, "marie curie", True, True, True),
    Row(CURIE, "Marie  Curie", True, True, True),
    Row(CURIE, "The Marie Curie", True, True, True),
    Row(CURIE, "Maria Sklodowska Curie", True, True, True),
    Row(CURIE, "Maria Skłodowska-Curie", True, True, True),
    Row(CURIE, "Pierre Curie", True, False, False),
    Row(CURIE, "Marie", True, False, False),
    Row(CURIE, "Marie Curie and Pierre Curie", True, False, True),
    Row(CURIE, "B", True, False, False),
    Row(CURIE, "16", True, False, False),
    Row(CURIE, "東京", True, False, False),
    Row(CURIE, "", False, False, False),
    Row(CURIE, "...", False, False, False),
    Row(CURIE, "Marie Curie.", False, False, True),
    Row(CURIE, "Marie Curie!", False, False, True),
    Row(CURIE, "Marie Curie?", False, False, True),
    Row(CURIE, "**Marie Curie**", False, False, True),
    Row(CURIE, "_Marie Curie_", False, False, True),
    Row(CURIE, "`Marie Curie`", False, False, True),
    Row(CURIE, '"Marie Curie"', False, False, True),
    Row(CURIE, "“Marie Curie”", False, False, True),
    Row(CURIE, "#### Marie Curie", False, False, True),
    Row(CURIE, "\\boxed{Marie Curie}", False, False, True),
    Row(CURIE, "A. Marie Curie", False, False, True),
    Row(CURIE, "A) Marie Curie", False, False, True),
    Row(CURIE, "(A) Marie Curie", False, False, True),
    Row(CURIE, "A: Marie Curie", False, False, True),
    Row(CURIE, "Answer: Marie Curie", False, False, True),
    Row(CURIE, "The answer is Marie Curie", False, False, True),
    Row(CURIE, "The correct answer: Marie Curie", False, False, True),
    Row(CURIE, "The answer is B", False, False, False),
    Row(CURIE, "It was Marie Curie", False, False, True),
    Row(CURIE, "It's Marie Curie", False, False, True),
    Row(CURIE, "I think Marie Curie", False, False, True),
    Row(CURIE, "Yes, Marie Curie", False, False, True),
    Row(CURIE, "Marie Curie or Lise Meitner", False, False, True),
    Row(CURIE, "Marie Curie, who found radium", False, False, True),
    Row(CURIE, "Marie Curie - a physicist", False, False, True),
    Row(CURIE, "Marie Curie (1867)", False, False, True),
    Row(CURIE, "Marie Curie found radium in Paris with her husband Pierre", False, False, True),
    Row(CURIE, "Marie Curie\nLise Meitner", False, False, True),
    Row(CURIE, "Marie Curie ", False, False, True),  # `trim` would have removed the space
    Row(CURIE, "Marie Curies", True, False, False),
    Row(LEWIS, "C. S. Lewis", True, True, True),
    Row(LEWIS, "C.S. Lewis", True, False, False),
    Row(LEWIS, "CS Lewis", True, False, False),
    Row(LEWIS, "C. Lewis", False, False, False),
    Row(WASHINGTON, "Washington, D.C.", True, True, True),
    Row(WASHINGTON, "Washington, the capital", False, False, True),
    Row(VITAMIN, "Vitamin A", True, True, True),
    Row(VITAMIN, "Vitamin C", True, False, False),
]


HALF = Example(question="?", answer="\\frac{1}{2}", target="\\boxed{\\frac{1}{2}}")
ROOT = Example(question="?", answer="2\\sqrt{3}", target="\\boxed{2\\sqrt{3}}")
SIXTEEN_BOXED = Example(question="?", answer="16", target="\\boxed{16}")
PAIR = Example(question="?", answer="(1,2)", target="\\boxed{(1,2)}")
NAME = Example(question="?", answer="\\text{Ida}", target="\\boxed{\\text{Ida}}")

BOXED_ROWS = [
    Row(SIXTEEN_BOXED, r"\boxed{16}", True, True, True),
    Row(SIXTEEN_BOXED, r"$\boxed{16}$", True, True, True),
    Row(SIXTEEN_BOXED, r"\[ \boxed{16}. \]", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed {16}", True, True, True),
    Row(SIXTEEN_BOXED, "4 times 4 is 16.\nSo $x = \\boxed{16}$ metres.", True, True, True),
    Row(SIXTEEN_BOXED, r"**\boxed{16}**", True, True, True),
    Row(SIXTEEN_BOXED, r"The answer is \boxed{16}.", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{16.0}", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{\$16}", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{ 16 }", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{4^2}", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{17}", True, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{-16}", True, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{the answer}", True, False, False),
    Row(SIXTEEN_BOXED, r"16 = \boxed{15}", True, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{9^{9^{9^9}}}", True, False, False),  # never computed to its end
    Row(SIXTEEN_BOXED, r"\boxed{\frac{}{}}", True, False, False),
    Row(SIXTEEN_BOXED, "", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{}", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{ }", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{16", False, False, True),
    Row(SIXTEEN_BOXED, r"\boxed 16", False, False, True),
    Row(SIXTEEN_BOXED, r"boxed{16}", False, False, True),
    Row(SIXTEEN_BOXED, r"\fbox{16}", False, False, True),
    Row(SIXTEEN_BOXED, "16", False, False, True),
    Row(SIXTEEN_BOXED, "#### 16", False, False, True),
    Row(SIXTEEN_BOXED, "The answer is 16.", False, False, True),
    Row(SIXTEEN_BOXED, "The answer is B", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{15} or \boxed{16}", False, False, True),
    Row(SIXTEEN_BOXED, r"\boxed{16} or \boxed{15}", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{\boxed{16}}", False, False, True),
    Row(SIXTEEN_BOXED, "\\boxed{16}\nIt was easy.", False, False, True),
    Row(HALF, r"\boxed{\frac{1}{2}}", True, True, True),
    Row(HALF, r"\boxed{\frac12}", True, True, True),
    Row(HALF, r"\boxed{\dfrac{1}{2}}", True, True, True),
    Row(HALF, r"\boxed{0.5}", True, True, True),
    Row(HALF, r"\boxed{1/2}", True, True, True),
    Row(HALF, r"\boxed{\frac{2}{1}}", True, False, False),
    Row(HALF, r"\boxed{\frac{1}{2}", False, False, True),  # never closed; the fraction is the last formula
    Row(HALF, r"so it is $\frac{1}{2}$", False, False, True),
    Row(ROOT, r"\boxed{2\sqrt{3}}", True, True, True),
    Row(ROOT, r"\boxed{\sqrt{12}}", True, True, True),
    Row(ROOT, r"\boxed{2\sqrt 3}", True, True, True),
    Row(ROOT, r"\boxed{\left\{ 3 \right\}}", True, False, False),
    Row(PAIR, r"\boxed{(1, 2)}", True, True, True),
    Row(PAIR, r"\boxed{(2,1)}", True, False, False),
    Row(NAME, r"\boxed{\text{Ida}}", True, True, True),
    Row(NAME, r"\boxed{Ida}", True, True, True),
    Row(THOUSAND, r"\boxed{1,000}", True, True, True),
]

PATTERN_ROWS = [
    Row(PARIS, response, in_format, exact, knows)
    for response, in_format, exact, knows in [
        ("<a>Paris</a>", True, True, True),
        ("<a>paris</a>", True, True, True),
        ("<a> Paris </a>", True, True, True),
        ("<a>Rome</a>", True, False, False),
        ("<a>B</a>", True, False, False),
        ("<a>The answer is Paris</a>", True, False, True),
        ("<a>B) Paris</a>", True, False, True),
        ("<a>**Paris**</a>", True, True, True),  # what counts as the answer is the user's own expression
        ("<a>Paris</a><a>Rome</a>", True, False, True),  # .+? runs to the last </a> of a full match
        ("", False, False, False),
        ("Paris", False, False, True),
        ("<a></a>", False, False, False),
        ("<a> </a>", False, False, False),
        ("<a>Paris", False, False, True),
        ("Paris</a>", False, False, True),
        ("<A>Paris</A>", False, False, True),
        ("<a>Paris</a>.", False, False, True),
        ("**<a>Paris</a>**", False, False, True),
        ("It is <a>Paris</a>", False, False, True),
        ("<a>Paris\n</a>", False, False, True),
        ("<a>Paris</a>\n<a>Rome</a>", False, False, True),
        ("#### Paris", False, False, True),
        ("\\boxed{Paris}", False, False, True),
        ("The answer is B", False, False, False),
        ("<b>Paris</b>", False, False, True),
    ]
] + [
    Row(THOUSAND, "<a>1,000</a>", True, True, True),
    Row(SIXTEEN, "<a>$16</a>", True, True, True),
    Row(SIXTEEN, "<a>16.0</a>", True, True, True),
    Row(SIXTEEN, "<a>16 of 20</a>", True, False, True),
    Row(SIXTEEN, "16 and <a>17</a>", False, False, False),
]

FOUND_ROWS = [
    Row(SIXTEEN, "#### 16", True, True, True),
    Row(SIXTEEN, "So #### 16 it is", True, True, True),
    Row(SIXTEEN, "#### 16.", True, True, True),
    Row(SIXTEEN, "#### 15\n#### 16", True, False, False),  # the first is taken, as lm-eval's filter does
    Row(SIXTEEN, "#### sixteen", False, False, False),
    Row(SIXTEEN, "16", False, False, True),
]

TABLES: tuple[tuple[AnswerFormat, list[Row]], ...] = (
    (OPTION, OPTION_ROWS),
    (HASH, HASH_ROWS),
    (PHRASE, PHRASE_ROWS),
    (BOXED, BOXED_ROWS),
    (TAG, PATTERN_ROWS),
    (FOUND, FOUND_ROWS),
)
