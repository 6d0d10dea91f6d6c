"""The run-operations that create, start and stop the mirrored database in Fabric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dbt_common.exceptions import CompilationError

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

_PUBLISH_ANEW = "It begins anew, so publish full loads: dbt run --full-refresh"


class DatabaseOperations:
    """What `dbt run-operation` can do with the mirrored database. Each yields lines to print."""

    def __init__(self, database: MirroredDatabase) -> None:
        self._database = database

    def create(self, default_schema: str, retention_days: int | None) -> Iterator[str]:
        """Create it.

        Args:
            default_schema: of tables without a schema; with it every table gets that of its folder
            retention_days: how long Fabric keeps deleted files; None for its default

        Raises:
            CompilationError: an argument is not allowed
        """
        is_days = isinstance(retention_days, int) and 1 <= retention_days <= 30
        if retention_days is not None and not is_days:
            raise CompilationError(f"`retention_days` is {retention_days!r}. Allowed: 1 to 30.")
        if not default_schema:
            raise CompilationError("`default_schema` must be the name of a schema, e.g. dbo.")
        if not self._database.create(default_schema, retention_days):
            yield f"{self._named} is there already. Nothing was changed."
            return
        yield f"{self._named} was created."
        yield "Publish the first files, then start it: dbt run-operation mirror_start"

    def start(self) -> Iterator[str]:
        """Start it."""
        before = self._database.start()
        if before == "Running":
            yield f"{self._named} runs already. Nothing was changed."
            return
        yield f"{self._named} was started."
        if before == "Stopped":
            yield _PUBLISH_ANEW

    def stop(self, confirm: str | None) -> Iterator[str]:
        """Stop it.

        Args:
            confirm: its name

        Raises:
            CompilationError: the user has not confirmed it
        """
        name = self._database.name
        if confirm != name:
            raise CompilationError(
                f"Stopping {name!r} stops every table in it. When it is started again, it begins "
                "anew with the files that are still in the landing zone: the rows applied before "
                "are lost until every table is published anew. To repair a single table, use "
                "`dbt run-operation mirror_rebuild` instead. Nothing was changed. To stop it, add "
                f"--args '{{confirm: {name}}}'"
            )
        if not self._database.stop():
            yield f"{self._named} does not run. Nothing was changed."
            return
        yield f"{self._named} was stopped."
        yield f"When it is started: {_PUBLISH_ANEW}"

    @property
    def _named(self) -> str:
        return f"The mirrored database {self._database.name!r}"
