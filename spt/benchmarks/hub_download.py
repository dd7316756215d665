"""Rows from the hub, through `datasets`, which is imported here alone and not before it is needed.

HF_TOKEN, HF_HOME and HF_HUB_OFFLINE act as huggingface_hub documents them.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spt.benchmarks.base import HubSet
from spt.spec import UserError

PATIENCE = 5.0  # seconds for the hub to answer a question; downloads have their own
_COMMIT = re.compile("[0-9a-f]{40}")


def download(hub: HubSet, split: str) -> list[dict[str, Any]]:
    """The rows of one split, downloaded unless they are cached. Raises UserError where that fails."""
    import datasets
    from datasets.exceptions import DataFilesNotFoundError, DatasetNotFoundError
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, OfflineModeIsEnabled

    where = f"{hub.id} ({hub.config})"
    instead = "or give a folder that holds it with --data-dir"
    try:
        with quiet(), _cache_alone(unless=_answers(hub)):
            found = datasets.load_dataset(hub.id, hub.config, split=split, revision=hub.revision)
        _check_commit(found, hub)
        return list(found.to_list())
    except GatedRepoError:
        raise UserError(f"{hub.id} is gated: accept its licence on its hub page, then set HF_TOKEN.") from None
    except DatasetNotFoundError as error:  # gated ones end here too, by their message
        if "gated" in str(error):
            raise UserError(f"{hub.id} is gated: accept its licence on its hub page, then set HF_TOKEN.") from None
        raise UserError(
            f"{where} at revision {hub.revision} is not on the hub (any more): give a folder that holds it with "
            "--data-dir, or set HF_TOKEN if it is private."
        ) from None
    except HfHubHTTPError as error:
        raise UserError(f"The hub refused {where}: {str(error).strip().splitlines()[0]}") from error
    except (ConnectionError, OfflineModeIsEnabled):
        why = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else "the hub cannot be reached"
        raise UserError(f"{where} is not in the cache and {why}: connect, {instead}.") from None
    except (DataFilesNotFoundError, ValueError, RuntimeError) as error:  # no such config or split, or a script
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{where} has no {split} rows to read on the hub ({first}); {instead[3:]}.") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(f"The disk is full: {where} could not be downloaded; make room or set HF_HOME.") from None
        raise UserError(f"{where} cannot be downloaded or stored: {error.strerror or error}.") from error
    except datasets.exceptions.DatasetGenerationError as error:
        raise UserError(f"{where} cannot be read ({error.__cause__ or error}): get it anew, {instead}.") from error


def _answers(hub: HubSet) -> bool:
    """Whether the hub can be reached, by one question that is not repeated. What it says is for `datasets` to find out.

    Without this a set that is not cached, and no network, take half a minute: six attempts, with pauses.
    """
    import httpx2
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        HfApi().dataset_info(hub.id, revision=hub.revision, timeout=PATIENCE)
    except httpx2.TransportError:
        return False
    except (HfHubHTTPError, OfflineModeIsEnabled):
        return True
    return True


@contextmanager
def _cache_alone(unless: bool) -> Iterator[None]:
    """Have `datasets` look into its cache alone, as HF_HUB_OFFLINE does; the library reads that once, so it is set."""
    import datasets

    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = before or not unless
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _check_commit(found: Any, hub: HubSet) -> None:
    """Raises UserError for another state of the set: where the hub cannot be reached, `datasets` takes any it has."""
    for file in found.cache_files:
        commit = next((part for part in Path(file["filename"]).parts if _COMMIT.fullmatch(part)), hub.revision)
        if hub.revision is not None and commit != hub.revision:
            raise UserError(
                f"{hub.id} is in the cache at {commit}, and spt asks for {hub.revision}: connect to the hub, or give a "
                "folder that holds it with --data-dir."
            )


@contextmanager
def quiet(*more: str) -> Iterator[None]:
    """No progress bars, and no log lines below an error, of `datasets`, the hub library and `more` inside the block."""
    import datasets

    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub", *more)]
    levels, shown = [logger.level for logger in loggers], datasets.is_progress_bar_enabled()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if shown:
            datasets.enable_progress_bars()
