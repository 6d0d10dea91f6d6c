"""Tokens of the Fabric notebook that dbt runs in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from azure.identity import (
    ChainedTokenCredential,
    CredentialUnavailableError,
    DefaultAzureCredential,
)
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.service.authentication import (
    GivenToken,
    Identity,
    NotebookCredential,
    token_credential,
)
from dbt.adapters.openmirroring.service.mirrored_database import FabricApi, FabricError
from tests.fabric_notebook import Notebook
from tests.fabric_server import FabricServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    created = FabricServer()
    created.connect(monkeypatch)
    created.workspace("Sales")
    return created


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    created = Notebook()
    created.enter(monkeypatch)
    return created


def ask(api: FabricApi) -> None:
    list(api.pages("GET", "workspaces", "value", "The workspaces cannot be listed"))


@pytest.mark.parametrize(
    ("scope", "audience"), [(scopes.STORAGE, "storage"), (scopes.FABRIC, "pbi")]
)
def test_onelake_and_the_rest_api_have_tokens_of_their_own(
    notebook: Notebook, scope: str, audience: str
) -> None:
    given = token_credential(Identity("notebook")).get_token(scope)

    assert notebook.asked == [audience]
    assert given.token == notebook.token(audience)


def test_a_token_serves_for_five_minutes(server: FabricServer, notebook: Notebook) -> None:
    api = FabricApi(NotebookCredential())
    server.token = notebook.token("pbi")
    ask(api)
    ask(api)
    assert notebook.asked == ["pbi"]

    # Azure's clients ask for another one five minutes before it expires
    given = NotebookCredential().get_token(scopes.FABRIC)
    assert 300 < given.expires_on - time.time() <= 600


def fails(_audience: str) -> str:
    raise RuntimeError("the session\n has ended")


@pytest.mark.parametrize(
    ("get_token", "told"),
    [
        (fails, "getToken('pbi') failed: the session has ended"),
        (lambda _: None, "getToken('pbi') returned no token"),
        (lambda _: "", "getToken('pbi') returned no token"),
    ],
)
def test_a_notebook_without_a_token_says_why_and_another_way_is_tried(
    notebook: Notebook,
    server: FabricServer,
    monkeypatch: pytest.MonkeyPatch,
    get_token: Any,
    told: str,
) -> None:
    monkeypatch.setattr(notebook, "get_token", get_token)
    notebook.enter(monkeypatch)

    with pytest.raises(FabricError) as refused:
        ask(FabricApi(NotebookCredential()))

    assert told in str(refused.value)
    assert "`authentication`" in str(refused.value)
    assert server.requests == []
    chain = ChainedTokenCredential(NotebookCredential(), GivenToken("another"))
    assert chain.get_token(scopes.FABRIC).token == "another"


def test_there_are_no_tokens_for_anything_else(notebook: Notebook) -> None:
    with pytest.raises(CredentialUnavailableError, match=r"no token for https://graph"):
        NotebookCredential().get_token("https://graph.microsoft.com/.default")
    assert notebook.asked == []


def test_by_default_the_notebook_comes_before_the_other_ways(notebook: Notebook) -> None:
    credential = token_credential(Identity())

    assert isinstance(credential, ChainedTokenCredential)
    tried = [type(each) for each in credential.credentials]
    assert tried == [NotebookCredential, DefaultAzureCredential]
    assert credential.get_token(scopes.FABRIC).token == notebook.token("pbi")


def test_the_module_is_found_before_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DbtConfigError, match="no module notebookutils"):
        token_credential(Identity("notebook"))

    (tmp_path / "notebookutils.py").write_text("raise ImportError('not in a session')")
    monkeypatch.syspath_prepend(tmp_path)

    credential = token_credential(Identity("notebook"))
    with pytest.raises(CredentialUnavailableError, match="not in a session"):
        credential.get_token(scopes.FABRIC)
