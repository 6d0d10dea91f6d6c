"""A Fabric notebook, as "NotebookUtils credentials utilities for Fabric" documents it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest


class Notebook:
    """The module `notebookutils`, which gives one token for each audience."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let this process be that of the notebook."""
        module = ModuleType("notebookutils")
        module.credentials = SimpleNamespace(getToken=self.get_token)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def get_token(self, audience: str) -> str:
        self.asked.append(audience)
        return self.token(audience)

    def token(self, audience: str) -> str:
        return f"a token for {audience}"
