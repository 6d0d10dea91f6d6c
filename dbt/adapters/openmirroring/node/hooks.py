"""The user's own code around a build: hooks, `sql_header` and the body of a Python model.

This code may change the relation of the node. A publication is compared with the rows that were
published last, so these must stay readable until then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.node.advance import Table
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    make_way,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import (
    PublishedRows,
    note_version,
    snapshot_state,
)
from dbt.adapters.openmirroring.node.user_code import first_word, may_change, without_comments
from dbt.adapters.openmirroring.protocol.facts import PUBLISHED, Relation, Rows
from dbt.adapters.openmirroring.protocol.start import REPLACED
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    VERSION_PROPERTY,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.text.errors import RefusedError, RunError, quoted_text

# the first words of statements that may end the history of a table, with its earlier versions
_REPLACING = {"create", "drop", "replace"}

_CHANGED_ROWS = "code of the node has changed the table in Spark"

# the state of a table that keeps earlier versions
_NUMBERED = re.compile(r"version:(\d+)")
# the state of every new Delta table
_FIRST_VERSION = "version:0"
# the state of no table
_CHANGED = "changed"


@dataclass
class CodeBefore:
    """The user's code before a build: pre-hooks, `sql_header`, and the body of a Python model.

    Before the first statement that may change the relation, the rows that were published last are
    kept: a Delta or Iceberg table keeps its earlier versions, so only the number of the version is
    noted. Other tables are copied.

    Args:
        published: the rows that were published last
        extends: whether the node's SQL was compiled to extend these rows
    """

    node: Node
    table: PublishedTable
    published: PublishedRows
    extends: bool
    _before: str | None = field(default=None, init=False)
    # the state that the table has as long as no row of it has changed
    _unchanged: str | None = field(default=None, init=False)
    _is_noted: bool = field(default=False, init=False)
    _copy: OpenMirroringRelation | None = field(default=None, init=False)

    def run(self) -> tuple[PublishedRows, str | None]:
        """Run the code.

        Returns:
            the rows that were published last; and why to rebuild, if the code has taken them away

        Raises:
            DbtRuntimeError: if a statement fails, or drops the relation that the node extends
            SnapshotMismatchError: if the code has changed the rows, and nothing has them any more
        """
        self._before = self._unchanged = self._state()
        self.node.run_code_before(self._keep)
        if self.table.last_build is None:  # nothing was published that the code could take away
            return self.published, None
        return self._after()

    def _after(self) -> tuple[PublishedRows, str | None]:
        published, warehouse, target = self.published, self.node.warehouse, self.node.target
        is_same = self._state() == self._unchanged
        is_kept = self._is_noted or self._copy
        # a table that was dropped and created again may have the version that it had before
        is_certain = published.are_beside or self._before != _FIRST_VERSION
        if is_same and is_certain and not is_kept:
            return replace(published), None  # it is described again: columns may have changed
        records = Table(warehouse, target, journal=self.table.last, marks=published.marks)
        found = records.look_again()
        is_dropped = found.facts.relation is not Relation.THERE
        if is_dropped and self.extends:
            raise RefusedError(
                f"A hook has dropped {target}, but the SQL of this run was compiled to extend its "
                "rows. Nothing was published. Remove the hook and run again; for a table that is "
                "built anew in each run, set `materialized: table`.",
                code="OM414",
            )
        is_other = is_dropped or found.marks.build != published.marks.build
        if is_same and not is_other and self._before is not None:
            if self._copy:
                warehouse.drop(self._copy)
            if self._is_noted:
                warehouse.unmark(target, [VERSION_PROPERTY])
            return replace(published), None
        if is_other and not (self._copy or published.are_beside):
            return _doubted(published), REPLACED
        if not (is_kept or published.is_ahead):
            assert self.table.last, "only a published table has rows to keep"
            if self._version is None and self._before == self.table.last.snapshot_state:
                return _doubted(published), _CHANGED_ROWS
            self._note()
            records.marks = None
        return records.published(), None

    def _keep(self, statement: str) -> bool:
        """Keep the published rows if a statement may change them. Return True: it is to run."""
        published, last = self.published, self.table.last_build
        if self._copy or published.are_beside or not last or published.relation is None:
            return True
        if published.is_view or not may_change(statement, self.node.target):
            return True
        version = self._version
        has_versions = published.is_past or version is not None
        if first_word(without_comments(statement.lower())) in _REPLACING or not has_versions:
            # without what other statements have changed since
            rows = published.relation.incorporate(version=published.relation.version or version)
            warehouse, copy = self.node.warehouse, table_beside(self.node.target, PUBLISHED, last)
            query, marks = f"select * from {rows}", {BUILD_PROPERTY: last}
            make_way(warehouse, copy)
            warehouse.run("mirror_keep", table=copy, query=query, properties=marks)
            self._copy = copy.carrying(last)
            warehouse.adapter.cache_added(self._copy)
        elif not (self._is_noted or published.is_ahead):
            self._note()
        return True

    @property
    def _version(self) -> str | None:
        """The version that the table had before the code; None if it keeps no versions."""
        # an Iceberg table that never had rows has no version
        found = _NUMBERED.fullmatch(self._before or "")
        return found[1] if found else None

    def _note(self) -> None:
        """Note the version that has the published rows, in case this process is killed."""
        kind, _, version = (self._before or "").partition(":")
        if kind != "version":
            assert self.table.last, "only a published table has rows to keep"
            as_before = replace(self.table.last, snapshot_state=self._before)
            self.table.verify_state(as_before, self._state() or "gone")
            return
        is_same = self._state() == self._before
        assert self.table.last, "only published rows are kept"
        note_version(self.node.warehouse, self.node.target, self.table.last.batch.build, version)
        self._is_noted = True
        self._unchanged = self._state() if is_same else _CHANGED

    def _state(self) -> str | None:
        """Return the state of the snapshot's data; None if it is unknown, or has no snapshot."""
        description, relation = self.published.description, self.published.relation
        if description is None or relation is None:
            return None
        try:
            return snapshot_state(self.node.warehouse, relation, description)
        except DbtDatabaseError:  # a hook has dropped it
            return None


def _doubted(published: PublishedRows) -> PublishedRows:
    return replace(published, facts=replace(published.facts, rows=Rows.FOREIGN))


def run_post_hooks(node: Node) -> None:
    """Run the post-hooks of a node, whose build is the snapshot already.

    Raises:
        RunError: if a hook fails
    """
    target = node.target
    why = f"{target} has the new rows in Spark, and the mirror keeps those published last."
    try:
        node.run_post_hooks()
    except DbtRuntimeError as error:
        raise RunError(f"A post-hook failed: {quoted_text(error)}\n{why}", code="OM415") from error
