"""A finished run scored again from its stored answers: by the rules as they are now, and by a judge where one is asked.

No model of the run is loaded. Whoever calls holds the run (`RunFolder.exclusive`). Doing it twice changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from spt import benchmarks, scoring
from spt.analysis import analyse
from spt.benchmarks.base import Benchmark
from spt.events import DataLoaded, MethodScored, Result, RunFinished
from spt.judge import PROMPT_SHA256, PROMPT_VERSION, Case, Judge, JudgeFailed, JudgeSettings, judge_all
from spt.metrics import Agreement, JudgeInfo, JudgeScores, MethodScores, Prediction, Rate, Verdict
from spt.spec import Method, UserError
from spt.store import RunFolder

Answers = Mapping[Method, Sequence[Prediction]]
Verdicts = Mapping[Method, Sequence[Verdict]]
Listen = Callable[[int, int], None]


def by_rule(folder: RunFolder) -> Result:
    """Recompute every metric. Stored verdicts of a judge stay, as long as there is one for each answer."""
    old = _finished(folder)
    benchmark = benchmarks.for_spec(folder.spec)
    answers = _scored_again(folder, old, benchmark)
    verdicts: Verdicts = {}
    if old.judge is not None:
        verdicts = _stored_verdicts(folder, answers, benchmark)
    return _keep(folder, old, answers, benchmark, old.judge if verdicts else None, verdicts)


def by_judge(
    folder: RunFolder, make: Callable[[], Judge], settings: JudgeSettings, listen: Listen = lambda done, total: None
) -> Result:
    """Recompute every metric and have each answer judged. `make` is called once it is known that there is work.

    Raises UserError where the judge fails: the run's result is as it was, and the verdicts given so far are kept.
    """
    old = _finished(folder)
    benchmark = benchmarks.for_spec(folder.spec)
    require_open(benchmark)
    answers = _scored_again(folder, old, benchmark)
    cases = [Case.of(row, benchmark.instruction) for rows in answers.values() for row in rows]
    done = 0

    def count(given: int, total: int) -> None:
        nonlocal done
        done = given
        listen(given, total)

    judge = make()
    try:
        found = judge_all(judge, cases, count)
    except JudgeFailed as error:
        raise UserError(
            f"The judge {settings.model} {error}; {done} of {len(cases)} answers are judged and kept, and "
            f"`{settings.command(folder.id)}` goes on."
        ) from error
    finally:
        judge.close()
    verdicts = {
        method: [
            found[Case.of(row, benchmark.instruction).key].model_copy(update={"id": row.id}) for row in answers[method]
        ]
        for method in answers
    }
    info = JudgeInfo(
        model=settings.model,
        revision=judge.revision,
        url=settings.shown_url,
        prompt_version=PROMPT_VERSION,
        prompt_sha256=PROMPT_SHA256,
        items=len(cases),
        time=time.time(),
    )
    stored = {method: folder.verdicts(method) for method in verdicts}
    if old.judge is not None and stored == verdicts and info == old.judge.model_copy(update={"time": info.time}):
        info = old.judge  # nothing new was said: the result stays as it is, to the byte
    return _keep(folder, old, answers, benchmark, info, verdicts)


def rows_changed(folder: RunFolder) -> bool:
    """Whether a local file of questions holds other rows now than when the run was made."""
    if not benchmarks.is_own_file(folder.spec.benchmark):
        return False
    made_from = [event.fingerprint for event in folder.events() if isinstance(event, DataLoaded)]
    return benchmarks.load(folder.spec)[1].fingerprint not in made_from[-1:]


def require_open(benchmark: Benchmark) -> None:
    """Raises UserError for a benchmark that needs no judge."""
    if benchmark.closed:
        raise UserError(
            f"{benchmark.name} lists its options, so its knowledge is ranked by likelihood and needs no judge: leave "
            "out --judge."
        )


def judge_scores(rows: Sequence[Prediction], verdicts: Sequence[Verdict]) -> JudgeScores:
    """The judge's rates of one method; an answer without a readable verdict keeps that of the rule."""
    pairs = list(zip(rows, verdicts, strict=True))
    correct = [row.knows if said.correct is None else said.correct for row, said in pairs]
    in_format = [row.in_format if said.in_format is None else said.in_format for row, said in pairs]
    return JudgeScores(
        knowledge=Rate.of(correct),
        in_format=Rate.of(in_format),
        exact=Rate.of(a and b for a, b in zip(correct, in_format, strict=True)),
        unparsed=sum(said.correct is None for said in verdicts),
        agreement_knowledge=Agreement.of((r.knows, v.correct) for r, v in pairs if v.correct is not None),
        agreement_format=Agreement.of((r.in_format, v.in_format) for r, v in pairs if v.in_format is not None),
    )


def _finished(folder: RunFolder) -> Result:
    result = folder.result()
    if result is None:
        raise UserError(f"Run {folder.id} is not finished: `{folder.spec.command()}` goes on with it.")
    return result


def _scored_again(folder: RunFolder, result: Result, benchmark: Benchmark) -> dict[Method, list[Prediction]]:
    """The stored answers of each method of the result, scored by the rules of now."""
    answers: dict[Method, list[Prediction]] = {}
    for method, scores in result.methods.items():
        answers[method] = rows = folder.predictions(method)
        if len(rows) != scores.format.n:
            raise UserError(
                f"Run {folder.id} has {len(rows)} of {scores.format.n} answers of {method} left: make it anew with "
                f"`{folder.spec.command()} --again`."
            )
    aliases: Mapping[str, tuple[str, ...]] = {}
    if not benchmark.closed and any("aliases" not in row.model_fields_set for rows in answers.values() for row in rows):
        # Rows of older runs lack the aliases, which decide on right and wrong: the benchmark still knows them.
        split = benchmarks.load(folder.spec)[1]
        aliases = {example.id: example.aliases for example in (*split.train, *split.test)}  # tuned items too
    return {
        method: [scoring.rescore(_with_aliases(row, aliases), benchmark.format) for row in rows]
        for method, rows in answers.items()
    }


def _with_aliases(row: Prediction, aliases: Mapping[str, tuple[str, ...]]) -> Prediction:
    if "aliases" in row.model_fields_set or not aliases.get(row.id):
        return row
    return row.model_copy(update={"aliases": aliases[row.id]})


def _stored_verdicts(folder: RunFolder, answers: Answers, benchmark: Benchmark) -> Verdicts:
    """The verdicts of the run; none at all where one is missing, or was about another text."""
    found: dict[Method, list[Verdict]] = {}
    for method, rows in answers.items():
        stored = {verdict.key: verdict for verdict in folder.verdicts(method)}
        keys = [Case.of(row, benchmark.instruction).key for row in rows]
        if not set(keys) <= stored.keys():
            return {}
        found[method] = [
            stored[key].model_copy(update={"id": row.id}) for key, row in zip(keys, rows, strict=True)
        ]
    return found


def _as_judged(rows: Sequence[Prediction], verdicts: Sequence[Verdict] | None) -> list[Prediction]:
    """Answers with the judge's word on knowledge in place of the rule's, where there is one."""
    if verdicts is None:
        return list(rows)
    return [
        row if said.correct is None else row.model_copy(update={"knows": said.correct})
        for row, said in zip(rows, verdicts, strict=True)
    ]


def _keep(
    folder: RunFolder, old: Result, answers: Answers, benchmark: Benchmark, info: JudgeInfo | None, verdicts: Verdicts
) -> Result:
    """Write what changed, the result last: killed before that, the run is as it was and can be rescored again."""
    methods: dict[Method, MethodScores] = {}
    for method, rows in answers.items():
        scores = MethodScores.of(rows, benchmark.closed)
        if method in verdicts:
            scores = scores.model_copy(update={"judge": judge_scores(rows, verdicts[method])})
        methods[method] = scores
        if rows != folder.predictions(method):
            folder.write_predictions(method, rows)
        if method in verdicts and verdicts[method] != folder.verdicts(method):
            folder.write_verdicts(method, verdicts[method])
    known = {method: _as_judged(rows, verdicts.get(method)) for method, rows in answers.items()}
    analysis = analyse(known, benchmark.closed, old.spec.arms)
    new = old.model_copy(update={"methods": methods, "analysis": analysis, "judge": info})
    if new != old:
        for method, scores in methods.items():
            folder.append(MethodScored(method=method, scores=scores))
        folder.append(RunFinished(result=new))  # last, and views that follow the run show it
    return new
