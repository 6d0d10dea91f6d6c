"""The OneLake of the tests refuses what OneLake refuses, and sees what must never happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.filedatalake import DataLakeFileClient, DataLakeServiceClient, FileSystemClient

from dbt.adapters.openmirroring.service.authentication import GivenToken
from tests.onelake_server import HOST, ITEM, ROOT, TOKEN, WORKSPACE, OneLakeServer

NUMBERED = f"{ROOT}/a.schema/b/{1:020d}.parquet"
IF_MISSING: dict[str, Any] = {"match_condition": MatchConditions.IfMissing}
IF_SAME: dict[str, Any] = {"match_condition": MatchConditions.IfNotModified}


@pytest.fixture
def files(server: OneLakeServer) -> Iterator[FileSystemClient]:
    account = DataLakeServiceClient(
        f"https://{HOST}", GivenToken(TOKEN), transport=server.transport(), retry_total=0
    )
    yield account.get_file_system_client(WORKSPACE)
    # these tests do what must not happen
    server.violations.clear()


def at(files: FileSystemClient, path: str) -> DataLakeFileClient:
    return files.get_file_client(f"{ROOT}/{path}")


def upload(files: FileSystemClient, path: str, content: bytes) -> None:
    at(files, path).upload_data(content, overwrite=True)


def rename(files: FileSystemClient, source: str, target: str, **options: Any) -> None:
    at(files, source).rename_file(f"{WORKSPACE}/{ROOT}/{target}", **options)


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
        (lambda files: rename(files, "a", "b"), "SourcePathNotFound"),
        (lambda files: rename(files, "x", "new/x"), "RenameDestinationParentPathNotFound"),
        (lambda files: rename(files, "x", "y", **IF_MISSING), "PathAlreadyExists"),
        (lambda files: at(files, "x").create_file(**IF_MISSING), "PathAlreadyExists"),
        (lambda files: at(files, "x").delete_file(etag="0x1", **IF_SAME), "ConditionNotMet"),
        (lambda files: at(files, "x").flush_data(7), "InvalidFlushPosition"),
        (lambda files: at(files, "d").delete_file(recursive=False), "DirectoryNotEmpty"),
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

    response: Any = refused.value.response
    assert response.headers["x-ms-error-code"] == code


def show_half_a_file(files: FileSystemClient) -> None:
    files.get_file_client(NUMBERED).upload_data(b"rows", overwrite=True)


def write_twice(files: FileSystemClient) -> None:
    for content in (b"rows", b"more"):
        upload(files, "x", content)
        rename(files, "x", f"{1:020d}.parquet")


def leave_the_landing_zone(files: FileSystemClient) -> None:
    list(files.get_paths(f"{ITEM}/Tables"))


@pytest.mark.parametrize(
    ("operation", "violation"),
    [
        (show_half_a_file, f"{NUMBERED} is visible before it is complete"),
        (write_twice, f"{ROOT}/{1:020d}.parquet was written twice"),
        (leave_the_landing_zone, f"list outside the landing zone: {ITEM}/Tables"),
    ],
)
def test_what_must_never_happen_in_a_landing_zone_is_seen(
    server: OneLakeServer,
    files: FileSystemClient,
    operation: Callable[[FileSystemClient], None],
    violation: str,
) -> None:
    operation(files)

    assert violation in server.violations
