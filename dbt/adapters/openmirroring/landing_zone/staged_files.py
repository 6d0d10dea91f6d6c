"""The files of a batch on the scratch pad, after they were written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.openmirroring.landing_zone.batch import StagedFile
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError, StagedFilesLostError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import FileRows, Plan
from dbt.adapters.openmirroring.landing_zone.published_table import compute_anew
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest, withdraw
from dbt.adapters.openmirroring.landing_zone.storage import Storage, plain
from dbt.adapters.openmirroring.landing_zone.table_files import TableFiles
from dbt.adapters.openmirroring.text.shown import shown_url

# the folder with the files to publish, in the folder of a batch on the scratch pad
ROWS = "rows"

# the bytes of an empty gzip file
_EMPTY_GZIP = 20


@dataclass(frozen=True)
class StagedFiles:
    """The staged files of one batch."""

    storage: Storage
    table: TableFolder
    batch_id: str

    @property
    def folder(self) -> str:
        return f"{self.table.staging(self.batch_id)}/{ROWS}"

    @property
    def _shown_folder(self) -> str:
        return shown_url(self.storage.url(self.folder))

    def written(self, plan: Plan) -> list[StagedFile]:
        """Find the data files that were written, without auxiliary files.

        Raises:
            MirrorError: if there are none
        """
        files = [
            StagedFile(entry.name, entry.size)
            for entry in plain(self.folder, self.storage.collect(self.folder))
            if not entry.name.startswith((".", "_"))
        ]
        if plan.definition.delimited:
            # without rows there may be an empty file, without a header
            files = [file for file in files if file.size > (_EMPTY_GZIP if file.is_gzip else 0)]
        if not files:
            raise MirrorError(
                f"Spark has written the files of this batch to {self._shown_folder}, but dbt "
                "finds none there: the two do not share this folder. Nothing was published. Set "
                "`landing_zone`, or for OneLake `staging_location`, to a place that all of Spark "
                "and the machine of dbt can reach."
            )
        return files

    def verified(
        self, plan: Plan, files: list[StagedFile], found: Sequence[FileRows]
    ) -> list[StagedFile]:
        """Check that files have the rows of the plan.

        Args:
            found: the rows that were read back, of these files and perhaps of others

        Returns:
            the files with rows; if none has rows, the first file, for its columns

        Raises:
            MirrorError: if they have other rows
        """
        names = {file.name for file in files}
        counted = [each for each in found if each.name in names]
        finding = plan.finding(counted)
        if finding:
            raise MirrorError(
                f"The files that Spark has written to {self._shown_folder} have, as far as dbt "
                f"sees them, {finding}. Nothing was published. If Spark runs on several machines, "
                "all of them must reach this folder: set `landing_zone`, or for OneLake "
                "`staging_location`, accordingly."
            )
        with_rows = {each.name for each in counted}
        return [file for file in files if file.name in with_rows] or files[:1]

    def waiting(self) -> dict[str, int]:
        """Return the sizes in bytes of the files that are still staged, by name."""
        found = plain(self.folder, self.storage.list(self.folder))
        return {entry.name: entry.size for entry in found}

    def check(
        self,
        manifest: Manifest,
        waiting: Mapping[str, int],
        gone: Mapping[int, StagedFile],
        journal: Journal | None,
    ) -> None:
        """Check that each file of a batch is either published, or still staged as it was written.

        Args:
            waiting: the files that are still staged, as `waiting()` returns them
            gone: the files that are gone from the scratch pad, by number
            journal: the journal of the table folder as it is now

        Raises:
            StagedFilesLostError: if a file is missing, or has another size
        """
        missing: Collection[StagedFile] = ()
        if journal and manifest.batch.starts_folder and journal.batch.id != manifest.batch.id:
            missing = gone.values()  # the old folder is not dropped yet
        elif gone:
            found = TableFiles.of(self.storage, self.table)
            missing = [
                file
                for number, file in gone.items()
                # the service removes lower numbers first: it has not removed one above the largest
                if number > found.largest or found.sizes.get(number, file.size) != file.size
            ]
        for file in manifest.files:
            if file in missing or waiting.get(file.name, file.size) != file.size:
                raise StagedFilesLostError(
                    f"The staged file {self.folder}/{file.name} is gone, or not as it was "
                    "written: somebody else has deleted or changed it. Nothing was changed. "
                    f"{withdraw(self.table.manifest)} Or: "
                    f"{compute_anew(manifest.batch.owner.node, manifest.batch.table_rows)}"
                )
