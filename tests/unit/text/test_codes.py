"""A message that docs/messages.md lists has its code where it leaves for dbt."""

from __future__ import annotations

import re
import sys
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.events.types import AdapterEventWarning
from dbt.cli.main import dbtRunner
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.node.warehouse import logger
from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.monitoring import TableReport, lines
from dbt.adapters.openmirroring.text import codes
from dbt.adapters.openmirroring.text.codes import CODES, coded, with_code

HELD = "3 of 5 rows would be deleted, and `max_deleted` is 10%. Nothing was published."


def found(text: object) -> list[str]:
    """The codes that a text shows."""
    return re.findall(r"\[(OM\d{3}): \S+#om\d{3}\]", str(text))


@pytest.mark.parametrize(("code", "words"), CODES.items())
def test_a_message_keeps_its_text_and_gets_its_code_once(code: str, words: str) -> None:
    message = f"1 {words.replace('...', '(`a`, é)')} b: c. Run again."

    told = with_code(message)

    assert told.startswith(f"{message} [")
    assert found(told) == [code]
    assert with_code(told) == told


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Database Error\n  relation not found",
        # of Spark, with words that are near to those of others
        "[UNRESOLVED_COLUMN] A column or function parameter with name `x` cannot be resolved.",
        "Unable to infer schema for CSV. It must be specified manually.",
        "the type of `a`, which is no higher order function",
    ],
)
def test_a_message_that_is_not_listed_stays_as_it_is(message: str) -> None:
    assert with_code(message) == message


def test_each_of_several_failures_has_its_code() -> None:
    told = with_code(f"sales.orders: {HELD}\nsales.lines: no such table\nsales.days: {HELD}")

    first, second, third = told.split("\n")
    assert (found(first), found(second), found(third)) == (["OM319"], [], ["OM319"])


def test_a_message_that_quotes_its_cause_has_one_code() -> None:
    told = with_code("orders cannot be rebuilt now, because: the name 'x' cannot be resolved.")

    assert found(told) == ["OM711"]


@pytest.mark.parametrize("kind", [MirrorError, CompilationError])
def test_an_error_gets_its_code_and_stays_the_same_error(kind: type[DbtRuntimeError]) -> None:
    error = kind(HELD)

    with pytest.raises(kind) as caught, coded(), coded():
        raise error

    assert caught.value is error
    assert HELD in str(error)
    assert found(error) == ["OM319"]


def test_an_error_that_is_not_of_dbt_passes() -> None:
    with pytest.raises(ValueError, match=re.escape(HELD) + "$"), coded():
        raise ValueError(HELD)


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

    assert with_code(HELD) == f"{HELD} [OM319: {page}#om319]"


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


def test_a_table_that_the_replicator_refuses_has_its_code() -> None:
    error = TableError("FileNumberReused", "1.parquet has a number that was applied before.")
    report = TableReport("sales", "orders", "Failed", error=error)

    assert found("\n".join(lines([report], None))) == ["OM425"]


def test_a_warning_has_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    fired: list[AdapterEventWarning] = []
    monkeypatch.setattr("dbt.adapters.events.logging.fire_event", fired.append)

    logger.warning("Published, but not applied: sales.orders: behind")

    assert [found(event.base_msg) for event in fired] == [["OM714"]]
