"""The command that asks a workspace, against stand-ins for Fabric."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import jwt
import pytest

from tests.workspace.__main__ import main
from tests.workspace.result import Result
from tests.workspace.stand_ins import NAME, StandIns, stand_ins

# what the token of the user says of the user and the tenant
CLAIMS = {
    "tid": "aaaaaaaa-1111-4222-8333-444444444444",
    "oid": "bbbbbbbb-1111-4222-8333-444444444444",
    "upn": "ada.lovelace@contoso.com",
    "name": "Ada Lovelace",
    "ipaddr": "203.0.113.9",
}
TOKEN = jwt.encode(CLAIMS, "a secret of Entra, which nobody here knows", "HS256")

# runs the command with arguments, and returns its exit status and the result
Run = Callable[..., tuple[int, Result]]


@pytest.fixture(autouse=True)
def hears_ctrl_c() -> Iterator[None]:
    """A shell that starts tests in the background switches it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIns]:
    """OneLake, Fabric and Livy, which this process reaches as it would reach the real ones."""
    with stand_ins(tmp_path, TOKEN) as started:
        for name, value in started.network.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AZURE_CLIENT_SECRET", "s3cret~of.the.application")
        yield started
        assert not started.onelake.elsewhere, "the run has looked at other items"


@pytest.fixture
def run(servers: StandIns, tmp_path: Path) -> Run:
    def call(*arguments: str) -> tuple[int, Result]:
        folder = tmp_path / "results"
        options = ["--stand-ins", "--patience", "0.001", "--authentication", "cli"]
        before = set(folder.glob("*.json"))
        status = main([NAME, *options, "--folder", str(folder), *arguments])
        written = sorted(set(folder.glob("*.json")) - before) or sorted(before)
        return status, Result.model_validate_json(written[-1].read_text())

    return call
