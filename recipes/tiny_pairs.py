"""Tiny base models with known knowledge, and their post-trained twins: does a base score foretell the twin's?

    python -m recipes.tiny_pairs                          # makes the models and the questions, in ./tiny-pairs
    python -m spt sweep recipes/tiny-pairs.yaml           # runs them all
    python -m spt rank --pairs recipes/tiny-pairs.yaml    # orders them
    python -m recipes.tiny_scores                         # the same by seed

Three seeds make six models each. A model is pre-trained here from nothing on a corpus of its own (recipes.tiny_world):
how many of the test facts the corpus holds, and how it answers questions, are independent of each other. Its twin is
the same model fully fine-tuned on the training questions in the benchmark's form, `#### answer`, the same way for all.
Whatever is there already is not made again; a model that was cut off begins anew.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from recipes.tiny_world import KNOWLEDGE, World, documents, make_world, mixtures
from spt.spec import RunSpec, UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor
    from transformers import PreTrainedModel

QUESTIONS_FILE = "questions.jsonl"
PAD, BOS, EOS = range(3)
SPECIAL = ["<pad>", "<bos>", "<eos>"]
Tell = Callable[[], Any]  # is called after every step


@dataclass(frozen=True)
class Size:
    """What the experiment is made of. Two layers, small batches and no weight decay learn facts soonest here."""

    seeds: int = 3
    train_people: int = 100
    test_people: int = 32
    vocabulary: int = 1000  # enough for every name to be a token of its own
    width: int = 96
    layers: int = 2
    heads: int = 4
    tokens: int = 96  # of a row
    rows: int = 8  # of a step
    steps: int = 1000
    learning_rate: float = 3e-3
    tuning_rows: int = 16
    tuning_steps: int = 100
    tuning_rate: float = 3e-4

    @property
    def all_steps(self) -> int:
        return self.steps + self.tuning_steps


def names(seed: int, place: int) -> tuple[str, str]:
    """Folders of a pair: the letters run from the corpus that holds the fewest test facts to the one that holds most.

    `spt rank` sees by the names that they are a pair.
    """
    stem = f"tiny-{seed}{'abcdef'[place]}"
    return f"{stem}-Base", f"{stem}-Instruct"


def prepare(folder: Path, size: Size) -> None:
    """The questions and the tokenizer. Raises UserError where the folder holds an experiment of another size."""
    folder.mkdir(parents=True, exist_ok=True)
    about = folder / "size.json"
    text = json.dumps(asdict(size), indent=1)
    if about.exists() and about.read_text() != text:
        raise UserError(f"{folder} holds models of other settings: give another --folder, or delete it.")
    world = make_world(size.train_people, size.test_people)
    rows = [
        {"question": fact.question, "answer": fact.value, "topic": fact.relation, "split": split}
        for split, facts in (("train", world.train), ("test", world.test))
        for fact in facts
    ]
    (folder / QUESTIONS_FILE).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    _train_tokenizer(world, size).save(str(folder / "tokenizer.json"))
    about.write_text(text)


def _train_tokenizer(world: World, size: Size) -> Tokenizer:
    """Byte-level BPE on a corpus that holds all facts: all models share it, whatever they know."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size.vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    mixture = mixtures(0)[3]._replace(knowledge=1.0)
    backend.train_from_iterator(islice(documents(world, mixture, "tokenizer"), 4000), trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", BOS)]
    )
    return backend


# ---- one pair


def make_pair(folder: Path, size: Size, seed: int, place: int, tell: Tell = lambda: None) -> None:
    """A base model and its twin, as folders of transformers. What is there already is not made again."""
    import torch

    torch.set_num_threads(1)  # pairs are made side by side; and the sums of one thread are always the same
    base, post = (folder / name for name in names(seed, place))
    if not base.exists():
        model = pretrain(folder, size, seed, place, tell)
        _save(model, folder, base)
    if not post.exists():
        _save(post_train(base, folder, size, seed, tell), folder, post)


def pretrain(folder: Path, size: Size, seed: int, place: int, tell: Tell) -> PreTrainedModel:
    """A model from nothing, on the corpus of its mixture."""
    import torch
    from tokenizers import Tokenizer
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    torch.manual_seed(1000 * seed + place)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=size.width, intermediate_size=3 * size.width,
        num_hidden_layers=size.layers, num_attention_heads=size.heads, num_key_value_heads=size.heads,
        max_position_embeddings=512, tie_word_embeddings=True, initializer_range=0.06,
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS,
    )  # fmt: skip
    world = make_world(size.train_people, size.test_people)
    corpus = documents(world, mixtures(seed)[place], f"{seed}-{place}")

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        """Documents end to end, cut into rows."""
        ids: list[int] = []
        wanted = size.rows * size.tokens
        while True:
            while len(ids) < wanted:
                ids += [*tokenizer.encode(next(corpus)).ids, EOS]
            rows = torch.tensor(ids[:wanted]).view(size.rows, size.tokens)
            ids = ids[wanted:]
            yield rows, rows

    model = LlamaForCausalLM(config)
    _fit(model, batches(), size.steps, size.learning_rate, tell)
    return model


def post_train(base: Path, folder: Path, size: Size, seed: int, tell: Tell) -> PreTrainedModel:
    """All weights tuned on training questions answered in the benchmark's form, with its instruction and without."""
    import torch
    from tokenizers import Tokenizer
    from torch.nn.utils.rnn import pad_sequence
    from transformers import AutoModelForCausalLM

    from spt import benchmarks
    from spt.quiet import quiet

    spec = RunSpec(benchmark=str(folder / QUESTIONS_FILE), answer_format="hash")
    benchmark, split = benchmarks.load(spec)
    layout = benchmark.layout
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    rng = random.Random(f"post-train-{seed}")

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            rows, labels = [], []
            for example in rng.sample(list(split.train), size.tuning_rows):
                lead = rng.choice((layout.instruction(benchmark), ""))
                context = tokenizer.encode(lead + layout.prompt(example)).ids
                answer = tokenizer.encode(layout.before_answer + example.target, add_special_tokens=False).ids
                rows.append(torch.tensor([*context, *answer, EOS]))
                labels.append(torch.tensor([-100] * len(context) + [*answer, EOS]))
            yield pad_sequence(rows, True, PAD), pad_sequence(labels, True, -100)  # right: causal, so never looked at

    with quiet():
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    _fit(model, batches(), size.tuning_steps, size.tuning_rate, tell)
    return model


def _fit(
    model: PreTrainedModel, batches: Iterator[tuple[Tensor, Tensor]], steps: int, peak_rate: float, tell: Tell
) -> None:
    """AdamW under a cosine, with a short warm-up."""
    import torch
    from torch.nn.functional import cross_entropy

    optimizer = torch.optim.AdamW(model.parameters(), lr=peak_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    model.train()
    for step in range(steps):
        rate = peak_rate * min(1.0, (step + 1) / 30) * (0.05 + 0.475 * (1 + math.cos(math.pi * step / steps)))
        optimizer.param_groups[0]["lr"] = rate
        ids, labels = next(batches)
        logits = model(input_ids=ids).logits[:, :-1]
        optimizer.zero_grad()
        cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tell()


def _save(model: PreTrainedModel, folder: Path, target: Path) -> None:
    """Whole or not at all."""
    from transformers import PreTrainedTokenizerFast

    from spt.quiet import quiet

    half = target.with_name(f".{target.name}")
    shutil.rmtree(half, ignore_errors=True)
    with quiet():
        model.save_pretrained(half)
        PreTrainedTokenizerFast(
            tokenizer_file=str(folder / "tokenizer.json"), pad_token="<pad>", bos_token="<bos>", eos_token="<eos>",
            model_max_length=512,
        ).save_pretrained(half)  # fmt: skip
    half.rename(target)


# ---- all pairs

out = Console()
_queue: Any = None  # in a worker: where its steps are told


def _listen_to(queue: Any) -> None:
    global _queue
    _queue = queue


def _work(folder: Path, size: Size, seed: int, place: int) -> None:
    parent = os.getppid()

    def tell() -> None:
        _queue.put(1)
        if os.getppid() != parent:
            raise SystemExit("The process that this one works for was killed.")

    make_pair(folder, size, seed, place, tell)


def make(folder: Path, size: Size, workers: int) -> None:
    """All pairs that are not there yet, side by side."""
    prepare(folder, size)
    pairs = [(seed, place) for seed in range(size.seeds) for place in range(len(KNOWLEDGE))]
    todo = [pair for pair in pairs if not all((folder / name).exists() for name in names(*pair))]
    out.print(f"{len(pairs)} pairs in {folder}: {len(pairs) - len(todo)} made before, {len(todo)} to make.")
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False),
    )  # fmt: skip
    context = get_context("spawn")
    queue = context.Queue()
    total = sum(
        (0 if (folder / base).exists() else size.steps) + size.tuning_steps
        for base, _ in (names(*pair) for pair in todo)
    )
    pool = ProcessPoolExecutor(workers, context, _listen_to, (queue,))
    with Progress(*columns, console=out, disable=not out.is_terminal) as bar, pool:
        task = bar.add_task("Training", total=total)
        futures = {pool.submit(_work, folder, size, *pair): pair for pair in todo}
        try:
            while not all(future.done() for future in futures):
                time.sleep(0.2)
                while not queue.empty():
                    bar.advance(task, queue.get())
            for future in as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def main(
    folder: Annotated[Path, typer.Option(help="where models and questions go")] = Path("tiny-pairs"),
    workers: Annotated[int, typer.Option(min=1, help="models trained side by side, one core each")] = os.cpu_count()
    or 1,
) -> None:
    """Make the models and the questions; recipes/tiny-pairs.yaml then runs them."""
    try:
        make(folder, Size(), workers)
    except UserError as error:
        out.print(f"[red]{error}[/red]", highlight=False)
        raise typer.Exit(2) from None
    out.print("Done. Next: python -m spt sweep recipes/tiny-pairs.yaml", highlight=False)


if __name__ == "__main__":
    typer.run(main)
