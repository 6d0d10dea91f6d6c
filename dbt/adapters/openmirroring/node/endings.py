"""How a committed batch ends in Spark. Each step can be repeated, also by a later run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.snapshot.held import drop_published_rows, mark_published
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEW_ROWS,
    NEXT,
    PART,
    TYPED_ROWS,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.state import version_state
from dbt.adapters.openmirroring.node.snapshot.swap import snapshot_version, swap, take_in_place
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.spark.relation import (
    BATCH_ID_PROPERTY,
    Marks,
    OpenMirroringRelation,
)


@dataclass(frozen=True)
class Ending(ABC):
    """The ending of a batch.

    Args:
        target: the relation of the node
        manifest: the batch
    """

    warehouse: Warehouse
    publication: Publication
    target: OpenMirroringRelation
    manifest: Manifest

    @abstractmethod
    def has_rows(self) -> bool:
        """Check whether Spark has the rows of the batch."""

    def before_files(self) -> str | None:
        """Do what must succeed before files are published.

        Returns:
            the state of the snapshot's data; None if it stays as it was committed

        Raises:
            DbtRuntimeError: if the snapshot refuses the rows; the batch is withdrawn if its rows
                were certainly not stored
        """
        return None

    @abstractmethod
    def after_files(self) -> None:
        """Make the snapshot that of the batch, once the files are published."""

    @property
    def _marks(self) -> Marks:
        return self.warehouse.marks(self.warehouse.found(self.target))

    def _beside(self, role: str) -> OpenMirroringRelation:
        return table_beside(self.target, role, self.manifest.batch.id)

    @property
    def _is_stored(self) -> bool:
        return self._marks.batch_id == self.manifest.batch.id


class Swap(Ending):
    """The next snapshot takes the place of the snapshot."""

    def has_rows(self) -> bool:
        return self.warehouse.found(self._beside(NEXT)) is not None or self._is_stored

    def after_files(self) -> None:
        following = self._beside(NEXT).carrying(self.manifest.batch.id)
        swap(self.warehouse, self.target, following)
        drop_published_rows(self.warehouse, self.target, self.manifest.previous_batch_id)


class Elsewhere(Ending):
    """Spark has lost the rows, or another Spark has them. Only the files are published."""

    def has_rows(self) -> bool:
        return False

    def after_files(self) -> None:
        pass


class Held(Ending):
    """The snapshot has the rows already, and is no longer held."""

    def has_rows(self) -> bool:
        return self._marks.held == self.manifest.held or self._is_stored

    def after_files(self) -> None:
        previous, batch_id = self.manifest.previous_batch_id, self.manifest.batch.id
        mark_published(self.warehouse, self.target, previous, batch_id)


class Unchanged(Ending):
    """The snapshot has had the rows all along."""

    def has_rows(self) -> bool:
        return self._is_stored or self._marks.batch_id == self.manifest.previous_batch_id

    def after_files(self) -> None:
        previous, batch_id = self.manifest.previous_batch_id, self.manifest.batch.id
        mark_published(self.warehouse, self.target, previous, batch_id)


class InPlace(Ending):
    """The snapshot takes the changed rows in place. It may refuse them, so it takes them first."""

    def has_rows(self) -> bool:
        return self._part is not None or self._is_stored

    def before_files(self) -> str | None:
        if self._part is None:  # an earlier run has stored them, and published the files
            return None
        warehouse, manifest, target = self.warehouse, self.manifest, self.target
        is_repeated = self.publication.batch_id != manifest.batch.id
        # read before the mark below, which changes the version too
        was_stored = is_repeated and not self._is_as_planned()
        try:
            if is_repeated:
                # A Spark server may still be running the INSERT of a run that died. Delta refuses
                # a write that began before this change of the table.
                mark = {"openmirroring.recovered_by": self.publication.batch_id}
                warehouse.mark(target, mark)
            self._store()
        except DbtRuntimeError:
            is_untouched = is_repeated or self._is_as_planned()
            if not was_stored and is_untouched:
                self.publication.withdraw(manifest)
            raise
        return version_state(warehouse, target)

    def after_files(self) -> None:
        part = self._part
        if part:
            self.warehouse.drop(part)

    @property
    def _part(self) -> OpenMirroringRelation | None:
        return self.warehouse.found(self._beside(PART))

    def _store(self) -> None:
        warehouse, target, batch = self.warehouse, self.target, self.manifest.batch
        keys = batch.definition.key_columns
        new_rows = warehouse.found(self._beside(TYPED_ROWS)) or self._beside(NEW_ROWS)
        # an earlier run may have died after it added the rows
        if keys or warehouse.count_rows(target) != batch.table_rows:
            take_in_place(warehouse, target, self._beside(PART), new_rows, keys)
        warehouse.mark(target, {BATCH_ID_PROPERTY: batch.id})
        warehouse.carries(target, batch.id)
        warehouse.replaced(target)

    def _is_as_planned(self) -> bool:
        """Check that the snapshot has not changed since the plan. Return False if unknown."""
        try:
            version = snapshot_version(self.warehouse, self.target)
        except DbtRuntimeError as error:
            logger.debug(f"{self.target}: {error}")
            return False
        planned = self.manifest.snapshot_version
        return planned is not None and version == planned


ENDINGS: dict[str, type[Ending]] = {
    "swap": Swap,
    "held": Held,
    "in_place": InPlace,
    "none": Unchanged,
}
