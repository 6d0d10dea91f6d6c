"""Names and paths in a landing zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError

ROW_MARKER = "__rowMarker__"
SCRATCH_PAD = "_scratchPad"
SCHEMA_SUFFIX = ".schema"

# the `defaultSchema` of a mirrored database, for tables without a schema folder
DEFAULT_SCHEMA = "dbo"

# The service moves applied files to one of these (specification, "Cleanup process").
PROCESSED_FOLDERS = ("_ProcessedFiles", "_FilesReadyToDelete")

_FILE_NAME = re.compile(r"(\d{20})(-\w+)?(\.\w+)+")
# characters that the storage refuses, or that readers of a folder take for a pattern
_FORBIDDEN = re.compile(r'[/\\:*?"<>|\[\]{}]')

# the limit for identifiers of the SQL analytics endpoint
_MOST_CHARACTERS = 128

# A file name may have 255 bytes. The rest is for the suffixes of tables that exist for one run.
_MOST_BYTES = 220


@dataclass(frozen=True)
class TableFolder:
    """The folder of one mirrored table, and its folder on the scratch pad.

    All paths are relative to the landing zone, with forward slashes.

    Args:
        schema: the schema, without the suffix `.schema` that its folder gets; empty for a table
            at the root of the landing zone
        identifier: the name of the table

    Raises:
        MirrorError: if a name would leave the landing zone, Fabric ignores it, or it is too long
    """

    schema: str
    identifier: str

    def __post_init__(self) -> None:
        kinds = [("table", self.identifier)] + ([("schema", self.schema)] if self.schema else [])
        for kind, name in kinds:
            if (
                not name
                or _FORBIDDEN.search(name)
                or not name.isprintable()
                or name != name.strip(" .")
                or name[0] == "_"
                or len(name) > _MOST_CHARACTERS
            ):
                raise MirrorError(
                    f"The {kind} name {_shortened(name)} cannot be a folder of the landing zone: "
                    "names must not be empty, begin with an underscore (Fabric ignores such "
                    "folders), begin or end with a dot or a space, be longer than "
                    f"{_MOST_CHARACTERS} characters, or contain invisible characters or any of "
                    '/ \\ : * ? " < > | [ ] { }. Set another `alias` or `schema`.',
                    code="OM209",
                )
        if "." in self.identifier:
            raise MirrorError(
                f"The table name {self.identifier!r} contains a dot. Set another `alias`."
            )
        if len(str(self).encode()) > _MOST_BYTES:
            raise MirrorError(
                f"The names of schema and table, {_shortened(str(self))}, are together longer "
                f"than {_MOST_BYTES} bytes in UTF-8. Set another `alias` or `schema`."
            )

    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}" if self.schema else self.identifier

    @cached_property
    def path(self) -> str:
        folder = f"{self.schema}{SCHEMA_SUFFIX}/" if self.schema else ""
        return f"{folder}{self.identifier}"

    @property
    def mirrored_table(self) -> str:
        """`schema.table` in the mirrored database."""
        return mirrored_table(self.schema, self.identifier)

    @property
    def metadata(self) -> str:
        return f"{self.path}/_metadata.json"

    @property
    def journal(self) -> str:
        return f"{self.path}/_journal.json"

    @cached_property
    def scratch(self) -> str:
        return f"{SCRATCH_PAD}/{self}"

    @property
    def manifest(self) -> str:
        """The path of the manifest: one for the table, so that only one batch can be committed."""
        return f"{self.scratch}/manifest.json"

    @property
    def held(self) -> str:
        """The path of the record of rows that are held back from publication."""
        return f"{self.scratch}/held.json"

    def staging(self, batch_id: str) -> str:
        return f"{self.scratch}/{batch_id}"

    def file(self, number: int, extension: str) -> str:
        return f"{self.path}/{file_name(number, extension)}"


def mirrored_table(schema: object, identifier: object) -> str:
    """Return `schema.table` in the mirrored database. The service may name no default schema."""
    return f"{schema or DEFAULT_SCHEMA}.{identifier}"


def file_name(number: int, extension: str, unique: str = "") -> str:
    """Return the name of a data file: 20 digits (specification, "Format requirements").

    A suffix follows if the number alone is not unique.
    """
    return f"{number:020d}{'-' if unique else ''}{unique}.{extension}"


def file_number(name: str) -> int | None:
    """Return the number of a data file; None if the name is not that of a data file."""
    match = _FILE_NAME.fullmatch(name)
    return int(match[1]) if match else None


def _shortened(name: str) -> str:
    return repr(name if len(name) <= _MOST_CHARACTERS else f"{name[:40]}...{name[-40:]}")
