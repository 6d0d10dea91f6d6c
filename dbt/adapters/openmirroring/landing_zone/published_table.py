"""Read access to a table as it was last published."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dbt.adapters.openmirroring.landing_zone.batch import Batch, Owner, new_batch_id
from dbt.adapters.openmirroring.landing_zone.errors import (
    ForeignTableFolderError,
    MirrorError,
    SnapshotMismatchError,
)
from dbt.adapters.openmirroring.landing_zone.inventory import TableFiles, published_folders
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.records import (
    LOAD_ANEW,
    HeldRecord,
    Journal,
    Manifest,
)
from dbt.adapters.openmirroring.landing_zone.storage import Readable, Storage
from dbt.adapters.openmirroring.protocol.facts import Held
from dbt.adapters.openmirroring.text.shown import shown


def compute_anew(node: str, rows: int) -> str:
    """Return the way out that computes the rows of a node anew, in place of so many rows."""
    name = ".".join(node.split(".")[2:])
    return (
        f"`dbt build --full-refresh --select {name}` publishes the rows that the node computes "
        f"anew, in place of the {rows:,} rows that were published: those that "
        "it cannot compute again are lost, as the history of a dbt snapshot."
    )


def publish_present(table: object, rows: str = "the rows") -> str:
    """Return the way out that computes nothing, and what it publishes."""
    return (
        f"`dbt run-operation mirror_rebuild --args '{{table: {table}}}'` publishes {rows} that "
        "Spark has, and computes nothing."
    )


class PublishedTable:
    """A table, as it was published last, and its expected owner."""

    def __init__(self, storage: Storage, table: TableFolder, owner: Owner) -> None:
        self.batch_id = new_batch_id()
        self.table = table
        self.last: Journal | None = None
        """The journal that this publication follows; None before the first publication."""
        self._storage = storage
        self._owner = owner
        self._superseded: Manifest | None = None
        """A batch that was never completed. It may have begun the table folder."""

    def pending(self) -> Manifest | None:
        """Read the journal, and return the batch that an interrupted run has left, if any.

        Raises:
            MirrorError: if a record is damaged
        """
        self.last = self.journal()
        return self._pending()

    @property
    def last_build(self) -> str | None:
        """The id of the build that was published last; None before the first publication."""
        return self.last.batch.build if self.last else None

    def journal(self) -> Journal | None:
        """Read the journal; None if the table has never been published."""
        return Journal.read(self._storage, self.table.journal)

    def read_held(self) -> Held | None:
        """Read the record of a snapshot that is ahead; None if there is none that can be read."""
        record = HeldRecord.read_whole(self._storage, self.table.held)
        return record.held if record else None

    def is_published_again(self) -> bool:
        """Check whether another run has published, or committed, since the journal was read.

        Raises:
            MirrorError: if a record is damaged
        """
        return self.journal() != self.last or self._pending() is not None

    def former_folder(self, build: str) -> TableFolder | None:
        """Find the other folder of the table that a build was published to last.

        Its name differs in case or in its schema.
        """
        name = self.table.identifier.lower()
        for folder in published_folders(self._storage):
            if folder.identifier.lower() != name or folder == self.table:
                continue
            with suppress(MirrorError):  # a damaged record says nothing
                journal = Journal.read(self._storage, folder.journal)
                if journal and journal.batch.build == build:
                    return folder
        return None

    def _pending(self, files: Readable | None = None) -> Manifest | None:
        """Read the manifest of a batch that is committed but not completed, if there is one."""
        return Manifest.read(files or self._storage, self.table.manifest)

    def verify(self, build: str | None, rebuilds: bool, is_there: bool = False) -> Journal | None:
        """2. Check that journal, table folder and snapshot belong together.

        Args:
            build: the id of the build of the snapshot; None if there is no snapshot, or it was
                never published
            rebuilds: whether the table is rebuilt, so that snapshot and files need not match
            is_there: whether Spark has a relation in the place of the snapshot

        Returns:
            the journal; None for a table that does not exist yet

        Raises:
            ForeignTableFolderError: if somebody else owns the folder or has changed its files
            SnapshotMismatchError: if the snapshot is not the one that was published last
        """
        # The journal is not read again. A newer one would be of another run, whose rows the next
        # snapshot does not have.
        if self.last is None:
            if not self._superseded:
                self._require_no_folder()
            return None
        self._require_owner(self.last.batch)
        if not rebuilds:
            self._require_batch(self.last, build, is_there)
            self._require_files(self.last)
        return self.last

    def verify_rows(self, journal: Journal, rows: int) -> None:
        """2. Check that the snapshot has as many rows as were published last.

        Raises:
            SnapshotMismatchError: if it has not
        """
        published = journal.batch.table_rows
        if rows != published:
            raise SnapshotMismatchError(
                f"Spark has {rows:,} rows of {self.table}, but {published:,} were published: "
                "somebody else has written to the table in Spark, or a hook has, or files of it "
                f"are lost. Nothing was changed. {self._ways_out(journal, rows)}",
                code="OM412",
            )

    def verify_state(
        self, journal: Journal, state: str, count: Callable[[], int] = lambda: 0
    ) -> None:
        """2. Check that the snapshot is in the state in which the last publication left it.

        Args:
            count: returns the number of rows of the snapshot; 0 if they cannot be read

        Raises:
            SnapshotMismatchError: if it is in another state
        """
        if journal.snapshot_state not in (None, state):
            raise SnapshotMismatchError(
                f"The rows of {self.table} in Spark are not those that were published last "
                f"({shown(journal.published_at)}): somebody else has written to the table, or a "
                "hook has, for example `on-run-end`, or files of it are lost. Nothing was "
                f"changed. {self._ways_out(journal, count())}",
                code="OM413",
            )

    def _ways_out(self, journal: Journal, rows: int) -> str:
        """Return the ways out of a snapshot with other rows than those that were published."""
        # no way out empties a mirrored table
        anew = compute_anew(self._owner.node, journal.batch.table_rows)
        present = f" {publish_present(self.table, f'the {rows:,} rows')}" if rows else ""
        return (
            f"{anew}{present} If others are to change the table, as a package that fills it at "
            "the end of each run, set `on_foreign_changes: publish`, which publishes the "
            "difference; or `mirror: false`."
        )

    def _require_owner(self, batch: Batch) -> None:
        """Check that a batch which was published or committed before is of the same owner."""
        owner = batch.owner
        if owner.project != self._owner.project:
            raise ForeignTableFolderError(
                f"The table folder {self.table.path} belongs to the dbt project "
                f"{shown(owner.project)!r} (node {shown(owner.node)}). Nothing was changed. "
                "Give the model another `alias` or `schema`; if that project is gone, delete the "
                f"folder and {self.table.scratch}, and {LOAD_ANEW}.",
                code="OM402",
            )
        if not self.table.schema and owner.schema != self._owner.schema:
            raise ForeignTableFolderError(
                f"The table folder {self.table.path} belongs to {shown(owner.node)} in the schema "
                f"{shown(owner.schema)!r}: without schema folders, a landing zone can have only "
                "one table of that name. Nothing was changed. Give the model another `alias`, or "
                "remove `schema_folder: false`; if that model is gone, delete the folder and "
                f"{self.table.scratch}, and {LOAD_ANEW}.",
                code="OM403",
            )

    def _require_no_folder(self) -> None:
        """Check that a table without a journal has no folder, which may be of somebody else."""
        if self._storage.list(self.table.path):
            raise ForeignTableFolderError(
                f"The table folder {self.table.path} exists, but has no _journal.json: "
                "dbt-openmirroring has not published it, or its journal is lost. Nothing was "
                "changed. Give the model another `alias` or `schema`; or delete the folder, and "
                f"{LOAD_ANEW}.",
                code="OM401",
            )

    def _require_files(self, journal: Journal) -> None:
        """Check that nobody else has changed the data files since the last publication."""
        files = TableFiles.of(self._storage.at_once(self.table.path), self.table)
        problem, code = files.problem_in(self.table, journal)
        if problem:
            raise ForeignTableFolderError(
                f"{problem}. Nothing was changed. {publish_present(self.table)} "
                f"{compute_anew(self._owner.node, journal.batch.table_rows)}",
                code=code,
            )

    def _require_batch(self, journal: Journal, build: str | None, is_there: bool) -> None:
        """Check that the snapshot carries the build that was published last."""
        last = journal.batch
        if build == last.build:
            return
        names = {"target": last.owner.target, "user": last.owner.user}
        by = [f"{name} {shown(value)!r}" for name, value in names.items() if value]
        what = f"batch {build}" if build else "no baseline"
        said = (
            f"{self.table.journal} says that batch {last.id} was published last "
            f"({', '.join([shown(journal.published_at), *by])}), but Spark has {what} of "
            f"{self.table}."
        )
        anew = compute_anew(self._owner.node, last.table_rows)
        if build and build > last.build:  # ids begin with a time
            raise SnapshotMismatchError(
                f"{said} Somebody else has published this table, or it was published to another "
                f"landing zone since. Nothing was changed. {publish_present(self.table)} {anew}",
                code="OM405",
            )
        restore = (
            f"`dbt run-operation mirror_restore --args '{{table: {self.table}}}'` brings the rows "
            "that were published back from the mirrored table, in place of those that Spark has."
            if build or is_there
            else "set `restore_baseline: true` in the target: then the rows that were published "
            "are brought back from the mirrored table."
        )
        raise SnapshotMismatchError(
            f"{said} Somebody else has published this table, or has changed it after a run was "
            "killed, or this is another warehouse, or the warehouse was lost. Nothing was "
            "changed. If several people publish here, set a `schema` of your own in the profile. "
            "Otherwise run with the warehouse that has this batch, or put it back. Or "
            f"{restore} {anew}",
            code="OM405",
        )
