"""The errors of a landing zone. Every message says what was found and what to do."""

from dbt.adapters.openmirroring.text.errors import RunError


class MirrorError(RunError):
    """The mirror and the model cannot be reconciled without a decision by the user."""


class LandingZoneUnavailableError(MirrorError):
    """The storage refused a request, e.g. for missing rights, a full disk or a wrong path."""


class NotPlainError(LandingZoneUnavailableError):
    """A path leads out of the landing zone, or to something other than a plain folder or file."""


class StagedFilesLostError(MirrorError):
    """A file of a committed batch is neither staged nor published."""


class PathExistsError(MirrorError):
    """The path of a new file already exists. The existing file was left unchanged."""


class ConcurrentPublicationError(MirrorError):
    """Another run is publishing the same table, or has published it in the meantime."""


class ForeignTableFolderError(MirrorError):
    """The table folder holds something that this project did not publish."""


class SnapshotMismatchError(MirrorError):
    """The snapshot is not the one that was published last."""


class MirroredTableMismatchError(MirrorError):
    """The mirrored table does not have the rows that were published."""
