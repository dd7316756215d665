"""Which base model belongs to which post-trained one: from a file, or from the models' names. Imports no torch.

    Qwen/Qwen3-0.6B-Base: Qwen/Qwen3-0.6B        # pairs.yaml: base model: post-trained model
    runs/tiny/base: runs/tiny/tuned

A sweep's file serves too: its `pair:` entries are read. Names tell where they differ by such a word alone: X-Base and
X, X and X-Instruct, X-it, X-chat; a preset's own kind counts where its name has no such word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from spt.home import home
from spt.presets import PRESETS, SMOL
from spt.ranking import Twins
from spt.spec import UserError, local_path

POST_WORDS = frozenset(("instruct", "it", "chat", "sft", "dpo", "rlhf", "rlvr", "tuned", "finetuned", "posttrained"))
BASE_WORDS = frozenset(("base", "pt", "pretrained"))
# Presets that go by another name than on the hub.
_HUB_NAMES = {"bundled": f"{SMOL}-135M-Instruct", "gemma-3-270m": "google/gemma-3-270m"}


def default_file() -> Path:
    """The file that is read where none is named."""
    return home() / "pairs.yaml"


def of_models(models: Iterable[str], path: Path | None = None) -> tuple[list[Twins], list[str]]:
    """The pairs among these models, and a sentence on each one that is not to be had.

    Those of the file count first: `path`, or `default_file()` if it exists. Raises UserError for a file that is none.
    """
    models = sorted(set(models))
    chosen = path or (default_file() if default_file().is_file() else None)
    given = read(chosen) if chosen else []
    twins, notes, taken = [], [], set()
    for base, post in given:
        taken |= {base, post}
        lacking = [name for name in (base, post) if name not in models]
        if not lacking:
            twins.append((base, post))
        elif path or len(lacking) == 1:  # a file for all occasions may name pairs that are not here at all
            notes.append(f"{chosen}: no scores of {' and of '.join(lacking)}, so {base} and {post} are no pair here.")
    named, ambiguous = by_name([model for model in models if model not in taken])
    return _titled([*twins, *named]), [*notes, *ambiguous]


def read(path: Path) -> list[tuple[str, str]]:
    """Pairs (base, post-trained) of a YAML file. Raises UserError for the first thing that is wrong with it."""
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: this is no YAML ({getattr(error, 'problem', None) or 'unreadable'}).") from None
    if isinstance(content, dict) and "models" in content:
        pairs = _of_sweep(path, content["models"])
    elif isinstance(node, yaml.MappingNode):
        # From the nodes: a mapping would keep the last of two equal keys, and say nothing.
        pairs = [(key.value, value.value) for key, value in node.value]
    else:
        pairs = []
    if not pairs or not all(isinstance(name, str) and name for pair in pairs for name in pair):
        raise UserError(f"{path}: write one line a pair, `base model: post-trained model`.")
    pairs = [(_absolute(base), _absolute(post)) for base, post in pairs]
    check_once(str(path), pairs)
    return pairs


def _of_sweep(path: Path, models: Any) -> list[tuple[str, str]]:
    entries = [entry["pair"] for entry in models if isinstance(entry, dict) and "pair" in entry]
    try:
        return [(str(entry["base"]), str(entry["post_trained"])) for entry in entries]
    except (KeyError, TypeError):
        raise UserError(f"{path}: a pair is {{base: MODEL, post_trained: MODEL}}, both of them.") from None


def _absolute(model: str) -> str:
    """As a run's spec has it: local folders by their absolute path."""
    path = local_path(model)
    return model if path is None else str(path)


def check_once(where: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Raises UserError where a model is in two pairs, or twice in one."""
    seen: set[str] = set()
    for pair in pairs:
        for model in pair:
            if model in seen:
                raise UserError(f"{where}: {model} stands in two pairs or twice in one; a model has one twin.")
            seen.add(model)


def by_name(models: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs that the names tell, and a sentence where they fit more than once."""
    stems: dict[str, list[str]] = {}
    for model in models:
        stems.setdefault(_stem(model), []).append(model)
    pairs, notes = [], []
    for together in stems.values():
        kinds = {model: _kind(model) for model in together}
        bases = [m for m in together if kinds[m] == "base"]
        posts = [m for m in together if kinds[m] == "post"]
        plain = [m for m in together if kinds[m] == ""]
        if not bases and posts:
            bases, plain = plain, []
        elif bases and not posts:
            posts, plain = plain, []
        if len(bases) == 1 and len(posts) == 1 and not plain:
            pairs.append((bases[0], posts[0]))
        elif len(together) > 1:
            notes.append(f"{', '.join(together)}: the names do not tell which two are a pair; say it with --pairs.")
    return pairs, notes


def _words(model: str) -> list[str]:
    return re.split(r"[-_/\\ ]+", _HUB_NAMES.get(model, model).lower())


def _stem(model: str) -> str:
    return "-".join(word for word in _words(model) if word not in POST_WORDS | BASE_WORDS)


def _kind(model: str) -> str:
    words = set(_words(model))
    if words & POST_WORDS:
        return "post"
    if words & BASE_WORDS:
        return "base"
    preset = PRESETS.get(model)
    return {"base": "base", "post-trained": "post"}[preset.kind] if preset else ""


def _titled(pairs: Sequence[tuple[str, str]]) -> list[Twins]:
    """Each pair by the last part of its names without such words; by the base's whole name where two are alike."""
    short = [_short(base) for base, _ in pairs]
    return [
        Twins(name if short.count(name) == 1 else base, base, post)
        for name, (base, post) in zip(short, pairs, strict=True)
    ]


def _short(model: str) -> str:
    for name in reversed(re.split(r"[/\\]", _HUB_NAMES.get(model, model))):
        rest = [part for part in re.split(r"([-_ ])", name) if part.lower() not in POST_WORDS | BASE_WORDS]
        short = re.sub(r"[-_ ]{2,}", "-", "".join(rest)).strip("-_ ")
        if short:  # a folder called `base` says less than the one it is in
            return short
    return model
