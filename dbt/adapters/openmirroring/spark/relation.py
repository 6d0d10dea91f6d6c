"""Relations and columns, with every name quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.base.column import Column
from dbt.adapters.contracts.relation import ComponentName
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.relation import SparkRelation

from dbt.adapters.openmirroring.spark.refusals import refuse_function

if TYPE_CHECKING:
    # not in the oldest dbt-adapters
    from dbt.adapters.base.relation import FunctionConfig

BATCH_ID_PROPERTY = "openmirroring.batch_id"
HELD_PROPERTY = "openmirroring.held"
REBUILD_PROPERTY = "openmirroring.held_rebuild"
VERSION_PROPERTY = "openmirroring.published_version"
_PROPERTIES = re.compile(r"^Table Properties: \[(.*)", re.MULTILINE)
_BATCH_ID = re.compile(rf"\b{re.escape(BATCH_ID_PROPERTY)}=(\w+)")


def quoted(name: str) -> str:
    """A name as an identifier of Spark SQL."""
    return "`{}`".format(name.replace("`", "``"))


@dataclass(frozen=True)
class Marks:
    """What a snapshot says of its publication, in properties of its table.

    Args:
        batch_id: that it was published with
        held: the id of the build that is ahead of the mirror; None if nothing is
        rebuild: why what is held will be a rebuild; empty if what has changed decides
        version: the state of the table that was published, if it was changed in place since
    """

    batch_id: str | None = None
    held: str | None = None
    rebuild: str = ""
    version: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Marks:
        """Read them. A table's properties are input: whatever is not of our form is none."""

        def found(name: str) -> str | None:
            value = properties.get(name, "")
            return value if re.fullmatch(r"\w+", value, re.ASCII) else None

        rebuild = properties.get(REBUILD_PROPERTY, "")
        return cls(
            found(BATCH_ID_PROPERTY), found(HELD_PROPERTY), rebuild, found(VERSION_PROPERTY)
        )


@dataclass(frozen=True, eq=False, repr=False)
class OpenMirroringRelation(SparkRelation):
    """A relation that quotes its names, yet matches them without regard to case.

    The quote policy of dbt decides both: with quoting on, a model `Orders` would not be found in
    a catalog that knows it as `orders`. So the policy stays dbt-spark's, and rendering does not
    ask for it.
    """

    stand_ins: ClassVar[
        dict[tuple[str, str], tuple[OpenMirroringRelation, OpenMirroringRelation]]
    ] = {}
    """Relations, and what a dry run has built in their place; by schema and name of the former."""

    version: str | None = None
    """The state of the table that is read, for formats with time travel; None for its last one."""

    def render(self) -> str:
        name: str = super().render()
        return f"{name} version as of {self.version}" if self.version else name

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **kwargs: Any) -> Any:
        """The relation of a node, or what a dry run has built in its place."""
        relation = super().create_from(quoting, relation_config, **kwargs)
        if relation.place not in cls.stand_ins:
            return relation
        _, built = cls.stand_ins[relation.place]
        return relation.incorporate(path={"identifier": built.identifier})

    def let_stand_in(self, built: OpenMirroringRelation) -> None:
        """Let everybody who asks for this relation from now on get another one."""
        self.stand_ins[self.place] = (self, built)

    @property
    def stands_in_for(self) -> OpenMirroringRelation | None:
        """The relation in whose place a dry run has built this one."""
        found = (
            real for real, built in list(self.stand_ins.values()) if built.place == self.place
        )
        return next(found, None)

    @property
    def place(self) -> tuple[str, str]:
        """Where it is, whatever the case of its name."""
        return str(self.schema).lower(), str(self.identifier).lower()

    def _render_iterator(self) -> Iterator[tuple[ComponentName | None, str | None]]:
        for key in ComponentName:
            part = self.path.get_part(key) if self.include_policy.get_part(key) else None
            yield key, part if part is None or self.is_cte else self.quoted(part)

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        return self.path.get_lowered_part(field) == value.lower()

    def quoted(self, identifier: str) -> str:
        # a schema may be in a catalog of its own: catalog.schema
        return ".".join(quoted(name) for name in identifier.split("."))

    def get_function_config(self, model: dict[str, Any]) -> FunctionConfig | None:
        """dbt's check of a function before it creates it."""
        found: FunctionConfig | None = super().get_function_config(model)
        if found:
            refuse_function(model)
        return found

    @property
    def batch_id(self) -> str | None:
        """The batch that this snapshot was published with, as of when dbt listed the schema."""
        # these are listed without properties: what looks like them is a comment
        if self.is_delta or self.is_iceberg:
            return None
        properties = "\n".join(_PROPERTIES.findall(self.information or ""))
        found = set(_BATCH_ID.findall(properties))
        # a comment or another property may have the same words
        return found.pop() if len(found) == 1 else None

    def carrying(self, batch_id: str) -> OpenMirroringRelation:
        """This relation as dbt would list it once it carries the batch id."""
        properties = f"Table Properties: [{BATCH_ID_PROPERTY}={batch_id}]"
        return replace(self, information=properties)


@dataclass
class OpenMirroringColumn(SparkColumn):
    """A column with Spark's types: dbt-spark asks for those of Postgres."""

    table_comment: str | None = None
    column_comment: str | None = None

    @property
    def quoted(self) -> str:
        return quoted(self.column)

    def is_string(self) -> bool:
        return self._type in ("string", "varchar", "char")

    def is_integer(self) -> bool:
        return self._type in (
            *("tinyint", "smallint", "int", "bigint"),
            *("byte", "short", "integer", "long"),
        )

    def is_float(self) -> bool:
        return self._type in ("float", "real", "double")

    def is_numeric(self) -> bool:
        return self._type in ("decimal", "dec", "numeric")

    def can_expand_to(self, other_column: Column) -> bool:  # noqa: ARG002
        """A string has no size that would have to grow."""
        return False

    @property
    def _type(self) -> str:
        """Without precision, length and collation."""
        return re.split(r"[\s(<]", self.dtype.strip().lower())[0]
