"""The facts of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spt.doctor import report


def test_report_tells_the_truth_and_no_secret(spt_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_a-secret")
    facts = report()
    assert "secret" not in json.dumps(facts)
    assert facts["token"] is True
    assert facts["hub"].startswith("offline mode")
    assert facts["devices"][-1]["device"] == "cpu"
    assert 0 < facts["memory"]["free_gb"] <= facts["memory"]["total_gb"]
    assert facts["disk"]["home"] == str(spt_home) and facts["disk"]["writable"]
    assert facts["models"] == {"bundled": "not fetched yet (93 MB)", "gemma-3-270m": "terms not accepted yet"}
    assert facts["packages"]["transformers"].startswith("5.")
    assert not spt_home.exists()  # it looks and writes nothing
