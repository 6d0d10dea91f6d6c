"""A Fabric notebook, as "NotebookUtils credentials utilities for Fabric" documents it."""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace

import jwt
import pytest

_RESOURCES = {
    "storage": "https://storage.azure.com",
    "pbi": "https://analysis.windows.net/powerbi/api",
    "keyvault": "https://vault.azure.net",
    "kusto": "https://kusto.kusto.windows.net",
}


class Notebook:
    """The module `notebookutils`, which gives one token for each audience.

    Args:
        lifetime: of the tokens, in seconds from now
    """

    def __init__(self, lifetime: int = 3600) -> None:
        self.asked: list[str] = []
        self.expires_on = int(time.time()) + lifetime

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let this process be that of the notebook."""
        module = ModuleType("notebookutils")
        module.credentials = SimpleNamespace(getToken=self.get_token)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def get_token(self, audience: str) -> str:
        self.asked.append(audience)
        return self.token(audience)

    def token(self, audience: str) -> str:
        claims = {"aud": _RESOURCES[audience], "exp": self.expires_on}
        return jwt.encode(claims, "a secret of Entra, which nobody here knows", "HS256")
