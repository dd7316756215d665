"""Files of a model on the hub, as a local folder.

HF_TOKEN, HF_HOME and HF_HUB_OFFLINE act as huggingface_hub documents them.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_download, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from spt.model_files import no_model
from spt.spec import UserError

# Only what is loaded: no pickles, no code, no second copy of the weights in another form.
PATTERNS = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.tiktoken"]
PATIENCE = 5.0  # seconds for the hub to answer a question; downloads have their own
IGNORED = ["*/*", "consolidated*", "*.fp16.safetensors"]


def fetch(
    name: str, revision: str | None, check: Callable[[Path], None], report: Callable[[str], None] = lambda message: None
) -> tuple[Path, str]:
    """Folder and commit of a hub model; downloads what the cache lacks.

    check: called with a folder that holds at least config.json, before weights are downloaded; may raise UserError.
    Raises UserError: unknown id or revision, gated, no network, not cached while offline, no safetensors, disk full.
    """
    report(f"Asking the hub about {name} …")
    with _errors(name, revision):
        try:
            info = HfApi().model_info(name, revision=revision, files_metadata=True, timeout=PATIENCE)
        except (OfflineModeIsEnabled, httpx2.TransportError) as error:
            return _from_cache(name, revision, isinstance(error, OfflineModeIsEnabled))
        files = {file.rfilename: file.size or 0 for file in info.siblings or []}
        weights = {file: size for file, size in files.items() if file.endswith(".safetensors") and "/" not in file}
        if "config.json" not in files or not weights:
            lacks = "safetensors weights" if "config.json" in files else "config.json"
            raise UserError(f"{name} has no {lacks} on the hub: spt loads safetensors, or a GGUF file.")
        # Asked for by the user's revision, so that the cache learns which commit it is and finds it offline.
        folder = Path(hf_hub_download(name, "config.json", revision=revision)).parent
        check(folder)
        commit = folder.name  # the cache names a snapshot's folder by its commit
        _check_disk(name, sum(weights.values()))
        report(f"Downloading {name} ({sum(weights.values()) / 1e6:.0f} MB, unless cached)")
        return Path(snapshot_download(name, revision=commit, allow_patterns=PATTERNS, ignore_patterns=IGNORED)), commit


def fetch_config(name: str, revision: str | None, timeout: float = PATIENCE) -> Path:
    """A folder that holds config.json of a hub model; of what the cache lacks, that file alone is downloaded.

    timeout: seconds for the hub to answer. Raises UserError as `fetch` does.
    """
    with _errors(name, revision):
        cached = try_to_load_from_cache(name, "config.json", revision=revision)
        if isinstance(cached, str):  # whether it is the newest is for `fetch` to find out
            return Path(cached).parent
        try:
            # Where there is no network the download itself would be tried six times, for half a minute; this is not.
            HfApi().model_info(name, revision=revision, timeout=timeout)
            return Path(hf_hub_download(name, "config.json", revision=revision, etag_timeout=timeout)).parent
        except (OfflineModeIsEnabled, httpx2.TransportError, LocalEntryNotFoundError):
            raise _not_cached(name, offline=constants.is_offline_mode()) from None
        except EntryNotFoundError:
            raise UserError(f"{name} has no config.json on the hub: spt loads safetensors, or a GGUF file.") from None


@contextmanager
def _errors(name: str, revision: str | None) -> Iterator[None]:
    """Turn what can go wrong with the hub into a UserError."""
    where = f"{name} at revision {revision}" if revision else name
    try:
        yield
    except GatedRepoError:
        raise UserError(f"{name} is gated: accept its licence on its hub page, then set HF_TOKEN.") from None
    except RevisionNotFoundError:
        raise UserError(f"{name} has no revision {revision!r}: give a branch, tag or commit of it.") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise no_model(name) from None
    except LocalEntryNotFoundError:
        raise UserError(f"The download of {where} was cut off: check the network and start again.") from None
    except HfHubHTTPError as error:
        raise UserError(f"The hub refused {where}: {str(error).strip().splitlines()[0]}") from error
    except httpx2.HTTPError as error:
        raise UserError(f"The download of {where} failed ({error}): check the network and start again.") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UserError(f"The disk is full: {name} could not be downloaded to {constants.HF_HUB_CACHE}.") from None
        raise UserError(f"Cannot store {name} in {constants.HF_HUB_CACHE}: {error.strerror or error}.") from error


def _from_cache(name: str, revision: str | None, offline: bool) -> tuple[Path, str]:
    try:
        folder = Path(
            snapshot_download(
                name, revision=revision, allow_patterns=PATTERNS, ignore_patterns=IGNORED, local_files_only=True
            )
        )
    except LocalEntryNotFoundError:
        raise _not_cached(name, offline) from None
    return folder, folder.name


def _not_cached(name: str, offline: bool) -> UserError:
    why = "HF_HUB_OFFLINE is set" if offline else "the hub cannot be reached"
    what = name if "/" in name else f"{name!r} is no preset, it"
    return UserError(
        f"{what} is not in the cache and {why}: connect, or use --model bundled or a local folder of safetensors."
    )


def _check_disk(name: str, size: int) -> None:
    """Raises UserError if a download of `size` bytes would fill the disk of the hub's cache."""
    cache = Path(constants.HF_HUB_CACHE)
    existing = next(folder for folder in [cache, *cache.parents] if folder.exists())
    free = shutil.disk_usage(existing).free
    if size > free:
        sizes = f"{size / 1e9:.1f} GB of disk and {free / 1e9:.1f} GB are free"
        raise UserError(f"{name} needs {sizes} in {cache}: make room or set HF_HOME to another disk.")
