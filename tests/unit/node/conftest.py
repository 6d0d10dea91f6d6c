from __future__ import annotations

import os

import pytest

# so that its assertions tell what differs
pytest.register_assert_rewrite("tests.unit.node.world")


@pytest.fixture(autouse=True)
def no_power_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what only a power loss would show, because the disk is slow."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
