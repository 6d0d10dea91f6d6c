"""2 and 3. Planning a publication by comparing the built rows with the published rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbt_common.exceptions import CompilationError, DbtDatabaseError

from dbt.adapters.openmirroring.landing_zone.errors import SnapshotMismatchError
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable, compute_anew
from dbt.adapters.openmirroring.node.compare import Comparer
from dbt.adapters.openmirroring.node.decide import (
    Change,
    decide,
    reasons_of,
    refuse_rebuild,
)
from dbt.adapters.openmirroring.node.definition import table_definition
from dbt.adapters.openmirroring.node.next_rows import NextRows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.node.progress import CHECKING, COMPARING
from dbt.adapters.openmirroring.node.refusals import why_left
from dbt.adapters.openmirroring.node.snapshot.published_rows import PublishedRows
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot, Reuse, same_files
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.spark.relation import ZONE_PROPERTY, OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import RECORDING_FORMATS, TableDescription
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.columns import landing_columns


@dataclass(frozen=True)
class Planner:
    """Compares the built rows with the published rows.

    Args:
        table: the table as it was published last
        published: the published rows in Spark
        scratch: keeps the results of comparisons
    """

    node: Node
    table: PublishedTable
    published: PublishedRows
    scratch: ScratchTables

    def described(self, built: OpenMirroringRelation) -> NextSnapshot:
        """Return the built rows, all of which need a comparison.

        Raises:
            CompilationError: if a column cannot be mirrored, or is read in the zone of a session
        """
        description = self.node.warehouse.describe(built)
        _refuse_zone_of_session(built, description)
        return NextSnapshot(built, description, landing_columns(description.columns), Reuse())

    def next_snapshot(
        self, built: OpenMirroringRelation, rows: NextRows | None, rebuild: str | None
    ) -> NextSnapshot:
        """Return the built rows, and what part of them needs no comparison.

        Args:
            rows: the rows that this run built it from; None if it was held
            rebuild: why nothing is compared; None if rows are compared
        """
        found, stored = self.described(built), self.published.description
        if rows and rows.touched:
            stored = None
        reuse: Reuse | None = rows.reuse if rows else None
        if reuse is None and stored and not rebuild and self.node.warehouse.is_local:
            reuse = same_files(stored, found.description)
        layout, moved = found.description.layout, None
        # a held snapshot is stored already as it is to be
        if rows and stored and stored.layout != layout:
            moved = f"stored as {layout} in Spark, before as {stored.layout}"
        return replace(found, reuse=reuse or found.reuse, moved=moved)

    def check(self, built: NextSnapshot, rebuild: str | None, with_rows: bool = True) -> None:
        """Check whether the built rows could be published.

        Args:
            rebuild: None if the changes decide
            with_rows: False checks its definition only

        Raises:
            MirrorError: if the rows in Spark and the landing zone do not belong together
            DbtRuntimeError: if a column cannot be mirrored, keys are NULL or not unique, or a
                rebuild is needed and refused
        """
        self.node.warehouse.show_step(CHECKING)
        journal = self.table.verify(self.published.build, rebuild is not None)
        comparer = self._comparer(built)
        if with_rows:
            comparer.load()
        if journal and not rebuild:
            reasons = reasons_of(journal, comparer.definition, self._outcome_of)
            refuse_rebuild(reasons, self.node.options, self._runs_code)

    @property
    def _runs_code(self) -> bool:
        return self.node.has_code_before or self.node.has_post_hooks

    def _outcome_of(self, change: Change) -> str:
        return str(self.node.warehouse.ask(f"mirror_on_{change.kind}", change=change))

    def plan(self, built: NextSnapshot, rebuild: str | None) -> SparkPlan:
        """Decide what to publish.

        Args:
            rebuild: None if the changes decide

        Raises:
            MirrorError: if the rows in Spark and the landing zone do not belong together
            DbtRuntimeError: if the rows cannot be published
        """
        published, warehouse = self.published, self.node.warehouse
        warehouse.show_step(COMPARING)
        rebuild = rebuild or meanwhile(published)
        journal = self.table.verify(published.build, rebuild is not None)
        comparer = self._comparer(built)
        try:
            return decide(
                journal,
                comparer.definition,
                self.node.options,
                comparer,
                self._outcome_of,
                rebuild=rebuild,
                moved=built.moved,
                runs_code=self._runs_code,
                initial="" if journal else self._why_initial(),
            )
        except DbtDatabaseError:
            self._require_version()
            raise

    def _require_version(self) -> None:
        """Check that the version of the snapshot that has the published rows can be read."""
        relation, journal = self.published.relation, self.table.last
        if relation is None or journal is None or not self.published.is_past:
            return
        try:
            self.node.warehouse.count_rows(relation)
        except DbtDatabaseError as error:
            raise SnapshotMismatchError(
                f"Version {relation.version} of {self.node.target} has the rows that were "
                "published last, and Spark cannot read it: "
                "somebody has removed old versions of the table (VACUUM, or the expiry of "
                "snapshots). Nothing was published. "
                f"{compute_anew(self.node.owner.node, journal.batch.table_rows)}"
            ) from error

    def _why_initial(self) -> str:
        """Return why a table that was published before has no table folder; empty if it was not.

        Spark ignores the case of a name, so the snapshot of an alias is also that of another case.
        """
        build = self.published.build
        if not build:
            return ""
        former = self.table.former_folder(build)
        if former:
            return f"the table folder was {former.path} before"
        return "the table folder was gone"

    def _comparer(self, built: NextSnapshot) -> Comparer:
        node = self.node
        return Comparer(
            node.warehouse,
            self.scratch,
            self.table,
            node.options,
            table_definition(built.columns, node.options),
            self.published.relation or node.target,
            built,
            node.history_keys if node.is_history else (),
            why_left(node.options, node.predicates) if node.is_incremental else None,
        )


def meanwhile(published: PublishedRows) -> str | None:
    """Return a rebuild if the user's own configuration has replaced the published rows.

    Then nothing is left to compare with.
    """
    if published.is_view:
        return "was a view meanwhile"
    # while rows are held, those that were published last are beside the snapshot
    is_lost = published.marks.unmirrored and not published.are_beside
    return "was not mirrored meanwhile" if is_lost else None


def returned(
    node: Node, table: PublishedTable, published: PublishedRows, zone_id: str
) -> str | None:
    """Return a rebuild if a table is back in a folder that it has left since.

    The folder has the rows of before. Those of Spark were published to another folder, or to
    another landing zone.

    Args:
        table: the table as it was published last to this folder
        zone_id: the name of this landing zone
    """
    journal, build = table.last, published.build
    if not journal or not build or build == journal.batch.build:
        return None
    before, now = journal.batch.owner, node.owner
    if (before.project, before.node) != (now.project, now.node):
        return None
    former = table.former_folder(build)
    if former:
        return f"the table folder was {former.path} before"
    # other nodes extend rows, which may be those of another warehouse
    if node.reads_itself or node.is_history or published.relation is None:
        return None
    found = node.warehouse.properties(published.relation).get(ZONE_PROPERTY, zone_id)
    return "was published to another landing zone meanwhile" if found != zone_id else None


def beyond_limit(node: Node, plan: SparkPlan) -> str | None:
    """Describe by how much a publication exceeds the limit of its node; None if it does not.

    A full load deletes as many rows as the table has fewer after it.
    """
    limit = node.options.max_deleted
    if limit is None or not plan.journal:
        return None
    published, deleted = plan.journal.batch.table_rows, plan.rows.deleted
    if plan.starts_folder:
        deleted = published - plan.row_count
    is_share = isinstance(limit, float)
    if deleted <= (published * limit / 100 if is_share else limit):
        return None
    told = f"{limit:g}%" if is_share else f"{limit:,}"
    return f"{deleted:,} of {published:,} rows would be deleted, and `max_deleted` is {told}"


def too_many_deleted(node: Node, finding: str) -> CompilationError:
    """Return the error for a publication that is held because of its limit."""
    return CompilationError(
        f"{finding}. Nothing was published: {node.target} has the new rows in Spark, and the "
        "mirror keeps the old ones. Correct the model and run it again. If the rows are right, "
        f"`dbt run-operation mirror_publish --args '{{table: {node.table_folder}}}'` publishes "
        "them; or set another `max_deleted`."
    )


def refuse_deletion(node: Node, plan: SparkPlan, finding: str | None) -> None:
    """Check that rows which Spark has lost are not taken for the rows of a node.

    Args:
        plan: a plan to publish what Spark has, without computing it
        finding: by how much it exceeds the limit of its node; None if it does not

    Raises:
        CompilationError: if it exceeds the limit, or if none of the published rows would be left
    """
    published = plan.journal.batch.table_rows if plan.journal else 0
    if finding:
        raise CompilationError(
            f"{finding}. Nothing was changed. If the {plan.row_count:,} rows that Spark has of "
            f"{node.target} are right, set another `max_deleted`."
        )
    if published and not plan.row_count:
        raise CompilationError(
            f"Spark has no rows of {node.target}, and {published:,} were published: its files may "
            "be lost. Nothing was changed. Put them back. If no rows are right, run the node with "
            "--full-refresh, which computes its rows anew and publishes those."
        )


def _refuse_zone_of_session(relation: OpenMirroringRelation, table: TableDescription) -> None:
    """Check that every session of Spark reads the same times in the partitions of a table.

    Raises:
        CompilationError: if a partition is a time that each session reads in its own zone
    """
    if table.layout.zone or table.layout.format in RECORDING_FORMATS:
        return
    times = [quoted(name) for name, dtype in table.partition_types if dtype == "timestamp"]
    if times:
        raise CompilationError(
            f"{relation} is partitioned by the timestamp {', '.join(times)}, and has no option "
            "`timeZone`: each session of Spark would read its partitions in another time zone. "
            "Nothing was published. If a hook creates the table, let it set `options (timeZone "
            "'UTC')`. Otherwise set `file_format: delta` or `iceberg`, or partition by "
            f"cast({times[0]} as string)."
        )
