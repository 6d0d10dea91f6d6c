"""A message that docs/messages.md lists has its code."""

from __future__ import annotations

import re
import sys
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.monitoring import TableReport, lines
from dbt.adapters.openmirroring.text import codes
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.errors import (
    ProfileError,
    RefusedError,
    RunError,
    SparkError,
    quoted_text,
)


def found(text: object) -> list[str]:
    """The codes that a text shows."""
    return re.findall(r"\[(OM\d{3}): \S+#om\d{3}\]", str(text))


@pytest.mark.parametrize("kind", [ProfileError, RefusedError, RunError, SparkError])
def test_an_error_ends_with_its_code(kind: type[RunError]) -> None:
    error = kind("Two rows have one key.\nChange it.", code="OM301")

    assert (error.code, found(error)) == ("OM301", ["OM301"])
    assert str(error).endswith("\n  Change it. [OM301: docs/messages.md#om301]")


def test_an_error_without_a_code_is_as_it_was_written() -> None:
    assert RunError("Nothing was done.").msg == "Nothing was done."


@pytest.mark.parametrize(
    "inner", [RunError("no name", code="OM704"), DbtRuntimeError("no name")], ids=["ours", "dbt's"]
)
def test_an_error_is_quoted_in_another_message_without_its_code(inner: DbtRuntimeError) -> None:
    outer = RunError(f"Not now: {quoted_text(inner)}. Run again.", code="OM711")

    assert outer.text == "Not now: no name. Run again."
    assert found(outer) == ["OM711"]


@pytest.mark.parametrize(
    ("urls", "page"),
    [
        ([], "docs/messages.md"),
        (["Source, https://git.example/m"], "docs/messages.md"),
        (
            ["Documentation, https://git.example/m/blob/main/docs/index.md"],
            "https://git.example/m/blob/main/docs/messages.md",
        ),
    ],
)
def test_a_code_names_the_address_that_the_package_was_built_with(
    monkeypatch: pytest.MonkeyPatch, urls: list[str], page: str
) -> None:
    built = Message()
    for url in urls:
        built["Project-URL"] = url
    monkeypatch.setattr(codes, "metadata", lambda _: built)
    # what was found for other tests is of another package
    monkeypatch.setattr(codes, "_page", codes._page.__wrapped__)

    assert with_code("Run again.", "OM319") == f"Run again. [OM319: {page}#om319]"


def fail(folder: Path, *command: str, config: str = "mirror=False", **settings: Any) -> str:
    """Run a command that fails in a project that needs no Spark, and return what it tells.

    Args:
        config: of its model, as in `config()`
        settings: of its profile
    """
    settings = {"landing_zone": "Files/LandingZone", "spark_idle_timeout": 0, **settings}
    output = {"type": "openmirroring", "schema": "s", **settings}
    profile = {"shop": {"target": "local", "outputs": {"local": output}}}
    project = {"name": "shop", "version": "1.0", "profile": "shop"}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (folder / "models").mkdir()
    (folder / "models" / "orders.sql").write_text(f"{{{{ config({config}) }}}} select 1 as id")
    events: list[Any] = []
    folders = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    result = dbtRunner(callbacks=[events.append]).invoke([*command, *folders])
    assert not result.success
    told = [event.info.msg for event in events if event.info.level in ("info", "error")]
    return str(result.exception) if result.exception else "\n".join(told)


def test_a_refused_profile_has_its_code(tmp_path: Path) -> None:
    assert found(fail(tmp_path, "parse", landing_zone="s3:/a")) == ["OM203"]


def test_a_node_that_is_not_configured_right_has_its_code(tmp_path: Path) -> None:
    config = "materialized='table', on_breaking_changes='fail'"

    assert found(fail(tmp_path, "parse", config=config)) == ["OM201"]


def test_a_refused_operation_has_its_code(tmp_path: Path) -> None:
    told = fail(tmp_path, "run-operation", "mirror_history", "--args", "{tabel: orders}")

    assert set(found(told)) == {"OM102"}


@pytest.mark.skipif(sys.platform == "win32", reason="links need an administrator")
def test_a_failed_check_of_the_landing_zone_has_its_code(tmp_path: Path) -> None:
    landing_zone = tmp_path / "Files" / "LandingZone"
    landing_zone.mkdir(parents=True)
    (landing_zone / "_scratchPad").symlink_to(tmp_path)

    assert set(found(fail(tmp_path, "debug"))) == {"OM426"}


def test_a_table_that_the_replicator_refuses_has_its_code_behind_that_of_the_service() -> None:
    error = TableError("FileNumberReused", "1.parquet was applied before.", code="OM425")
    report = TableReport("sales", "orders", "Failed", error=error)

    told = "\n".join(lines([report], None))

    assert "FileNumberReused: 1.parquet was applied before. [OM425: " in told
