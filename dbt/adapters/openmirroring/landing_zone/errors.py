"""What can go wrong in a landing zone. Every message says what was found and what to do."""

from dbt_common.exceptions import DbtRuntimeError


class MirrorError(DbtRuntimeError):
    """The mirror and the model cannot be brought together without a decision of the user."""


class LandingZoneUnavailableError(MirrorError):
    """The storage refused: missing rights, a full disk, a path that is not a folder."""


class NotPlainError(LandingZoneUnavailableError):
    """A link, a pipe or the like is where only plain folders and files may be, or a way out."""


class PathExistsError(MirrorError):
    """Something already is where a file was to appear; it was left as it is."""


class ConcurrentPublicationError(MirrorError):
    """Another run publishes, or has meanwhile published, the same table."""


class ForeignTableFolderError(MirrorError):
    """The table folder holds something that this dbt project did not publish."""


class SnapshotMismatchError(MirrorError):
    """The snapshot in Spark is not the one that was published last."""
