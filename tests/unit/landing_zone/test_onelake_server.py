"""The OneLake of the tests refuses what OneLake refuses, and sees what must never happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.filedatalake import DataLakeServiceClient, FileSystemClient

from dbt.adapters.openmirroring.service.authentication import GivenToken
from tests.onelake_server import HOST, ITEM, ROOT, TOKEN, WORKSPACE, OneLakeServer

NUMBERED = f"{ROOT}/a.schema/b/{1:020d}.parquet"
IF_MISSING: dict[str, Any] = {"match_condition": MatchConditions.IfMissing}


def connect(server: OneLakeServer, token: str = TOKEN) -> DataLakeServiceClient:
    transport = server.transport()
    return DataLakeServiceClient(
        f"https://{HOST}", GivenToken(token), transport=transport, retry_total=0
    )


@pytest.fixture
def files(server: OneLakeServer) -> Iterator[FileSystemClient]:
    yield connect(server).get_file_system_client(WORKSPACE)
    # these tests do what must not happen
    server.violations.clear()


def upload(files: FileSystemClient, path: str, content: bytes) -> None:
    files.get_file_client(f"{ROOT}/{path}").upload_data(content, overwrite=True)


def answered(error: HttpResponseError) -> str:
    response: Any = error.response
    return str(response.headers["x-ms-error-code"])


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (lambda files: files.exists(), "OperationNotAllowedOnWorkspace"),
        (lambda files: files.create_directory("a"), "OperationNotAllowedOnManagedFolder"),
        (lambda files: files.create_directory(f"{ITEM}/a"), "OperationNotAllowedOnManagedFolder"),
        (lambda files: files.delete_directory(ITEM), "OperationNotAllowedOnManagedFolder"),
        (
            lambda files: files.get_directory_client(ROOT).set_access_control(permissions="0777"),
            "UnsupportedQueryParameter",
        ),
        (
            lambda files: files.get_file_client(f"{ROOT}/a").rename_file(f"{WORKSPACE}/{ROOT}/b"),
            "SourcePathNotFound",
        ),
        (
            lambda files: files.get_file_client(f"{ROOT}/x").rename_file(
                f"{WORKSPACE}/{ROOT}/new/x"
            ),
            "RenameDestinationParentPathNotFound",
        ),
        (
            lambda files: files.get_file_client(f"{ROOT}/x").rename_file(
                f"{WORKSPACE}/{ROOT}/y", **IF_MISSING
            ),
            "PathAlreadyExists",
        ),
        (
            lambda files: files.get_file_client(f"{ROOT}/x").create_file(**IF_MISSING),
            "PathAlreadyExists",
        ),
        (
            lambda files: files.get_file_client(f"{ROOT}/x").delete_file(
                etag="0x1", match_condition=MatchConditions.IfNotModified
            ),
            "ConditionNotMet",
        ),
        (lambda files: files.get_file_client(f"{ROOT}/x").flush_data(7), "InvalidFlushPosition"),
        (
            lambda files: files.get_file_client(f"{ROOT}/d").delete_file(recursive=False),
            "DirectoryNotEmpty",
        ),
        (lambda files: list(files.get_paths(f"{ROOT}/none")), "PathNotFound"),
    ],
)
def test_the_server_of_the_tests_refuses_what_onelake_refuses(
    files: FileSystemClient, operation: Callable[[FileSystemClient], Any], code: str
) -> None:
    for name in ("x", "y", "d/z"):
        upload(files, name, b"1")

    with pytest.raises(HttpResponseError) as refused:
        operation(files)

    assert answered(refused.value) == code


def test_without_a_token_nothing_is_answered(server: OneLakeServer) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(connect(server, "another").get_file_system_client(WORKSPACE).get_paths(ROOT))

    assert refused.value.status_code == 401


def test_without_its_workspace_in_the_file_system_a_rename_finds_no_source(
    server: OneLakeServer, files: FileSystemClient
) -> None:
    upload(files, "x", b"1")
    wrong = DataLakeServiceClient(
        f"https://{HOST}/{WORKSPACE}/{ITEM}/Files",
        GivenToken(TOKEN),
        transport=server.transport(),
    ).get_file_client("LandingZone", "x")

    with pytest.raises(HttpResponseError) as refused:
        wrong.rename_file("LandingZone/y")

    assert answered(refused.value) == "SourcePathNotFound"


def test_a_file_that_is_visible_before_it_is_complete_is_seen(
    server: OneLakeServer, files: FileSystemClient
) -> None:
    files.get_file_client(NUMBERED).upload_data(b"rows", overwrite=True)

    assert any("before it is complete" in violation for violation in server.violations)


def test_a_file_that_is_written_twice_is_seen(
    server: OneLakeServer, files: FileSystemClient
) -> None:
    for content in (b"rows", b"more"):
        upload(files, "x", content)
        files.get_file_client(f"{ROOT}/x").rename_file(f"{WORKSPACE}/{ROOT}/{1:020d}.parquet")

    assert server.violations == [f"{ROOT}/{1:020d}.parquet was written twice"]


def test_requests_outside_the_landing_zone_are_seen(
    server: OneLakeServer, files: FileSystemClient
) -> None:
    list(files.get_paths(f"{ITEM}/Tables"))

    assert server.violations == [f"list outside the landing zone: {ITEM}/Tables"]
