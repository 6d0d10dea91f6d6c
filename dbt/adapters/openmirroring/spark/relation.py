"""Relations and columns that quote every name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.column import Column
from dbt.adapters.contracts.relation import ComponentName, HasQuoting, RelationConfig
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.relation import SparkRelation

from dbt.adapters.openmirroring.spark.refusals import refuse_function
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.parsed import FLOATS, INTEGERS, scalar_name

if TYPE_CHECKING:
    # missing in the oldest supported dbt-adapters
    from dbt.adapters.base.relation import FunctionConfig
    from typing_extensions import Self

BUILD_PROPERTY = "openmirroring.batch_id"
ZONE_PROPERTY = "openmirroring.landing_zone"
VERSION_PROPERTY = "openmirroring.published_version"
CHECKED_PROPERTY = "openmirroring.checked"
UNMIRRORED_PROPERTY = "openmirroring.unmirrored"
RESTORED_PROPERTY = "openmirroring.restored"
_PROPERTIES = re.compile(r"^Table Properties: \[(.*)", re.MULTILINE)
_LOCATION = re.compile(r"^Location: (.*)$", re.MULTILINE)
_BUILD = re.compile(rf"\b{re.escape(BUILD_PROPERTY)}=(\w+)")


@dataclass(frozen=True, eq=False, repr=False)
class OpenMirroringRelation(SparkRelation):
    """A relation that quotes its names, but matches them case-insensitively.

    dbt's quote policy controls both, so that dbt would not find a model `Orders` in a catalog that
    lists it as `orders`. So the policy stays that of dbt-spark, and rendering ignores it.
    """

    version: str | None = None
    """The version of the table to read, in formats with time travel; None for the last version."""

    @cached_property
    def _name(self) -> str:
        """The quoted names, which statements and messages ask for many times."""
        name: str = super().render()
        return name

    def render(self) -> str:
        return f"{self._name} version as of {self.version}" if self.version else self._name

    @cached_property
    def place(self) -> tuple[str, str]:
        """The schema and the name, both in lower case."""
        return str(self.schema).lower(), str(self.identifier).lower()

    def _render_iterator(self) -> Iterator[tuple[ComponentName | None, str | None]]:
        for key in ComponentName:
            part = self.path.get_part(key) if self.include_policy.get_part(key) else None
            yield key, part if part is None or self.is_cte else self.quoted(part)

    def matches(
        self, database: str | None = None, schema: str | None = None, identifier: str | None = None
    ) -> bool:
        # dbt asks this of every relation in the schema, and its own comparison is slow
        name = str(identifier).lower()
        if database is None and (str(schema).lower(), name) == self.place:
            return True
        if identifier is not None and name.strip("`") != self.place[1].strip("`"):
            return False
        return bool(super().matches(database, schema, identifier))

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        return self.path.get_lowered_part(field) == value.lower()

    def quoted(self, identifier: str) -> str:
        # a schema may name its catalog: catalog.schema
        return quoted(identifier).replace(".", "`.`")

    def get_function_config(self, model: dict[str, Any]) -> FunctionConfig | None:
        """Return dbt's configuration of a function, and refuse what Spark does not support."""
        found: FunctionConfig | None = super().get_function_config(model)
        if found:
            refuse_function(model)
        return found

    # What follows is as of when dbt listed the schema. A comment or another property may contain
    # the same text, which makes it ambiguous.

    @property
    def build(self) -> str | None:
        """The id of the build that made this snapshot."""
        # these formats are listed without properties, so any match would come from a comment
        if self.is_delta or self.is_iceberg:
            return None
        found = set(_BUILD.findall(self._listed_properties))
        return found.pop() if len(found) == 1 else None

    @property
    def is_checked(self) -> bool:
        """Whether `--empty` or `--sample` has made this relation."""
        return f"{CHECKED_PROPERTY}=true" in self._listed_properties

    @property
    def location(self) -> str:
        """The URL of the table's folder; empty if it is unknown."""
        found = set(_LOCATION.findall(self.information or ""))
        return found.pop() if len(found) == 1 else ""

    @cached_property
    def _listed_properties(self) -> str:
        return "\n".join(_PROPERTIES.findall(self.information or ""))

    def carrying(self, build: str) -> OpenMirroringRelation:
        """Return this relation as dbt would list it with the id of its build."""
        return replace(self, information=f"Table Properties: [{BUILD_PROPERTY}={build}]")


class StandIns:
    """The relations that a dry run has built, each in place of another relation."""

    def __init__(self) -> None:
        self._built: dict[
            tuple[str, str], tuple[OpenMirroringRelation, OpenMirroringRelation]
        ] = {}

    def put(self, relation: OpenMirroringRelation, built: OpenMirroringRelation) -> None:
        """Let a relation stand in for another one from now on."""
        self._built[relation.place] = (relation, built)

    def take_all(self) -> list[OpenMirroringRelation]:
        """Return the relations that were built. From now on, they stand in for no other ones."""
        built = [built for _, built in self._built.values()]
        self._built.clear()
        return built

    def real(self, built: OpenMirroringRelation) -> OpenMirroringRelation | None:
        """Return the relation that another one stands in for, or None."""
        pairs = list(self._built.values())  # other threads add to them
        return next((real for real, found in pairs if found.place == built.place), None)

    def relation_class(self) -> type[OpenMirroringRelation]:
        """Return a class of relations for an adapter, which dbt asks for the relation of a node.

        dbt creates relations with a class method, which knows no adapter.
        """
        built = self._built

        class DryRunRelation(OpenMirroringRelation):
            @classmethod
            def create_from(
                cls, quoting: HasQuoting, relation_config: RelationConfig, **kwargs: Any
            ) -> Self:
                """Return the relation of a node, or the one that stands in for it."""
                relation = super().create_from(quoting, relation_config, **kwargs)
                if relation.place not in built:
                    return relation
                _, stand_in = built[relation.place]
                path = replace(relation.path, identifier=stand_in.identifier)
                return replace(relation, path=path)

        return DryRunRelation


@dataclass
class OpenMirroringColumn(SparkColumn):
    """A column that knows Spark's types. dbt-spark's column knows only those of Postgres."""

    table_comment: str | None = None
    column_comment: str | None = None

    @classmethod
    def string_type(cls, size: int) -> str:
        return f"varchar({size})"

    @property
    def quoted(self) -> str:
        return quoted(self.column)

    def is_string(self) -> bool:
        return scalar_name(self.dtype) == "string"

    def is_integer(self) -> bool:
        return scalar_name(self.dtype) in INTEGERS

    def is_float(self) -> bool:
        return scalar_name(self.dtype) in FLOATS

    def is_numeric(self) -> bool:
        return scalar_name(self.dtype) == "decimal"

    def can_expand_to(self, other_column: Column) -> bool:  # noqa: ARG002
        """Return False, because a string in Spark has no size that could be expanded."""
        return False
