"""The adapter and its connections, as far as nodes use them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.cache import RelationsCache
from dbt.adapters.contracts.connection import AdapterResponse, Connection

from dbt.adapters.openmirroring.dbt_core.constraints import ConstraintParser
from dbt.adapters.openmirroring.node.progress import Progress
from dbt.adapters.openmirroring.node.user_code import UserCode
from dbt.adapters.openmirroring.spark.relation import (
    OpenMirroringColumn,
    OpenMirroringRelation,
    StandIns,
)

if TYPE_CHECKING:
    import agate


class Connections(Protocol):
    """The connections of a command. `connections.py` documents them."""

    embedded_warehouse: Path | None

    def own_session(self) -> AbstractContextManager[None]: ...

    def users_session(self) -> AbstractContextManager[None]: ...

    def get_thread_connection(self) -> Connection: ...

    def refresh(self, table: str) -> None: ...

    def spark_major(self) -> int: ...

    def has_metastore(self) -> bool: ...


class Adapter(ConstraintParser, Protocol):
    """dbt's adapter.

    Attributes:
        user_code: who is asked about the statements of this thread
        checked: by place, the relations that `--empty` or `--sample` has made
        stand_ins: the relations that a dry run has built
    """

    user_code: UserCode
    cache: RelationsCache
    checked: dict[tuple[str, str], OpenMirroringRelation]
    progress: Progress
    stand_ins: StandIns

    @property
    def connections(self) -> Connections: ...

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False
    ) -> tuple[AdapterResponse, agate.Table]: ...

    def get_relation(
        self, database: str | None, schema: str | None, identifier: str | None
    ) -> OpenMirroringRelation | None: ...

    def list_relations(self, database: str | None, schema: str) -> list[OpenMirroringRelation]: ...

    def get_columns_in_relation(
        self, relation: OpenMirroringRelation
    ) -> list[OpenMirroringColumn]: ...

    def create_schema(self, relation: BaseRelation) -> None: ...

    def drop_relation(self, relation: OpenMirroringRelation) -> None: ...

    def rename_relation(self, old: OpenMirroringRelation, new: OpenMirroringRelation) -> None: ...

    def cache_added(self, relation: OpenMirroringRelation) -> str: ...

    def cache_dropped(self, relation: OpenMirroringRelation) -> str: ...
