"""The run-operations that create, change, start and stop the mirrored database in Fabric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.operations.arguments import FLAG, NAME, number, operation
from dbt.adapters.openmirroring.service.definition import (
    CHANGE_DATA_FEED,
    RETENTION,
    SCHEMA_SETTING,
    text_of,
)
from dbt.adapters.openmirroring.text.shown import shown

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

_PUBLISH_ANEW = (
    "It starts from nothing, so publish a full load of each table: `dbt run-operation "
    "mirror_rebuild` publishes the rows that Spark has. `dbt run --full-refresh` publishes those "
    "that all models compute anew, without what incremental models cannot compute again."
)


class DatabaseOperations:
    """The run-operations of the mirrored database. Each yields the lines to print."""

    def __init__(self, database: MirroredDatabase) -> None:
        self._database = database

    @operation(
        "mirror_create_database",
        default_schema=NAME,
        retention_days=number(1, 30),
        change_data_feed=FLAG,
    )
    def create(
        self,
        *,
        default_schema: str | None = None,
        retention_days: int | None = None,
        change_data_feed: bool | None = None,
    ) -> Iterator[str]:
        """Create the mirrored database, or change its definition if it exists.

        An argument that is left out keeps the current value. A new database gets Fabric's default.

        Args:
            default_schema: schema of tables without a schema. If it is set, every other table gets
                the schema of its folder
            retention_days: days for which Fabric keeps deleted files
            change_data_feed: whether the tables have Delta's change data feed. Fabric has it for
                all tables of a mirrored database or for none
        """
        given = {
            SCHEMA_SETTING: default_schema,
            RETENTION: retention_days,
            CHANGE_DATA_FEED: change_data_feed,
        }
        settings = {name: value for name, value in given.items() if value is not None}
        if self._database.create(settings):
            yield f"{self._named} was created."
            yield "Publish the first files, then start it: dbt run-operation mirror_start"
            return
        changes = self._database.update(settings)
        if not changes:
            yield f"{self._named} already exists with this definition. Nothing was changed."
            return
        told = [
            f"{name} {'not set' if old is None else shown(old)} -> {new}"
            for name, (old, new) in changes.items()
        ]
        yield f"{self._named} already exists. Its definition was changed: {'; '.join(told)}"

    @operation("mirror_definition")
    def definition(self) -> Iterator[str]:
        """Print `mirroring.json`, as Git integration stores it."""
        yield from text_of(self._database.definition()).splitlines()

    @operation("mirror_start")
    def start(self) -> Iterator[str]:
        """Start the mirrored database."""
        before = self._database.start()
        if before == "Running":
            yield f"{self._named} is already running. Nothing was changed."
            return
        yield f"{self._named} was started."
        if before == "Stopped":
            yield _PUBLISH_ANEW

    @operation("mirror_stop", confirm=NAME)
    def stop(self, *, confirm: str | None = None) -> Iterator[str]:
        """Stop the mirrored database, if `confirm` is its name."""
        name = self._database.name
        if confirm != name:
            raise CompilationError(
                f"Stopping {name!r} stops every table in it. When it is started again, it starts "
                "from nothing with the files that are still in the landing zone: the rows "
                "applied before are lost until every table is published anew. To repair a single "
                "table, use `dbt run-operation mirror_rebuild` instead. Nothing was changed. To "
                f"stop it, add --args '{{confirm: {name}}}'"
            )
        if not self._database.stop():
            yield f"{self._named} is not running. Nothing was changed."
            return
        yield f"{self._named} was stopped."
        yield f"When it is started: {_PUBLISH_ANEW}"

    @property
    def _named(self) -> str:
        return f"The mirrored database {self._database.name!r}"
