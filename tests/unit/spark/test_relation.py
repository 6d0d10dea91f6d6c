from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.exceptions.compilation import ApproximateMatchError

from dbt.adapters.openmirroring.spark.relation import (
    CHECKED_PROPERTY,
    OpenMirroringColumn,
    OpenMirroringRelation,
    StandIns,
)


def relation(**path: Any) -> OpenMirroringRelation:
    created: OpenMirroringRelation = OpenMirroringRelation.create(**path)
    return created


@pytest.mark.parametrize(
    ("schema", "identifier", "rendered"),
    [
        ("sales", "orders", "`sales`.`orders`"),
        ("sales", "select", "`sales`.`select`"),
        ("a`b", "c d", "`a``b`.`c d`"),
        ("catalog.sales", "orders", "`catalog`.`sales`.`orders`"),
    ],
)
def test_names_are_quoted_and_matched_without_regard_to_case(
    schema: str, identifier: str, rendered: str
) -> None:
    found = relation(schema=schema, identifier=identifier)

    assert found.render() == rendered
    assert found.quote_policy.identifier is False


@pytest.mark.parametrize(
    ("schema", "identifier", "is_found"),
    [
        ("sales", "ORDERS", True),
        ("SALES", "orders", True),
        (None, "orders", True),
        ("sales", None, True),
        ("sales", "order", False),
        ("sale", "orders", False),
    ],
)
def test_a_relation_is_found_by_its_names_in_any_case(
    schema: str | None, identifier: str | None, is_found: bool
) -> None:
    orders = relation(schema="Sales", identifier="Orders")

    assert orders.matches(None, schema, identifier) is is_found


def test_a_name_that_is_given_with_quotes_is_an_error() -> None:
    with pytest.raises(ApproximateMatchError):
        relation(schema="Sales", identifier="Orders").matches(None, "sales", "`orders`")


def test_columns_are_quoted_and_have_types_of_spark() -> None:
    assert OpenMirroringColumn("a`b", "int").quoted == "`a``b`"
    assert OpenMirroringColumn.string_type(4000) == "varchar(4000)"


@pytest.mark.parametrize(
    ("dtype", "kinds"),
    [
        ("string", {"string"}),
        ("string collate UTF8_LCASE", {"string"}),
        ("varchar(10)", {"string"}),
        ("char(1)", {"string"}),
        ("tinyint", {"integer", "number"}),
        ("INT", {"integer", "number"}),
        ("bigint", {"integer", "number"}),
        ("float", {"float", "number"}),
        ("double", {"float", "number"}),
        ("decimal(10,2)", {"numeric", "number"}),
        ("boolean", set()),
        ("timestamp", set()),
        ("array<string>", set()),
    ],
)
def test_a_column_knows_what_kind_of_type_it_has(dtype: str, kinds: set[str]) -> None:
    column = OpenMirroringColumn("c", dtype)
    all_kinds = ("string", "integer", "float", "numeric", "number")
    assert {kind for kind in all_kinds if getattr(column, f"is_{kind}")()} == kinds
    assert not column.can_expand_to(OpenMirroringColumn("c", "string"))


@pytest.mark.parametrize(
    ("information", "batch_id"),
    [
        ("Type: MANAGED\nTable Properties: [openmirroring.batch_id=20a1]\nX: y", "20a1"),
        ("Table Properties: [a=b, openmirroring.batch_id=20a1, c=d]", "20a1"),
        ("Table Properties: [xopenmirroring.batch_id=20a1]", None),
        ("Comment: openmirroring.batch_id=20a1", None),
        ("Provider: delta\nComment: x\nTable Properties: [openmirroring.batch_id=20a1]", None),
        ("Comment: x\nTable Properties: [openmirroring.batch_id=1]\nProvider: iceberg", None),
        ("Table Properties: [a=openmirroring.batch_id=0, openmirroring.batch_id=20a1]", None),
        (None, None),
    ],
)
def test_the_batch_of_a_snapshot_is_in_its_properties(
    information: str | None, batch_id: str | None
) -> None:
    snapshot = OpenMirroringRelation.create(
        schema="s",
        identifier="t",
        information=information,
        is_delta="Provider: delta" in (information or ""),  # as dbt-spark tells it
        is_iceberg="Provider: iceberg" in (information or ""),
    )
    assert snapshot.build == batch_id


@pytest.mark.parametrize(("value", "is_checked"), [("true", True), ("false", False)])
def test_a_relation_that_a_check_of_the_sql_has_made_is_known(
    value: str, is_checked: bool
) -> None:
    information = f"Table Properties: [a=b, {CHECKED_PROPERTY}={value}]"

    found = relation(schema="s", identifier="t", information=information)

    assert found.is_checked is is_checked


def test_a_relation_of_a_dry_run_stands_in_for_that_of_its_node_until_it_ends() -> None:
    """Not for relations of other adapters."""
    stand_ins = StandIns()
    model: Any = SimpleNamespace(
        database=None, catalog_name=None, schema="sales", identifier="Orders", quoting={}
    )
    model.quoting_dict = model.quoting
    relations = stand_ins.relation_class()
    real = relations.create_from(model, model)
    built = real.incorporate(path={"identifier": "orders__built"})

    stand_ins.put(real, built)

    assert relations.create_from(model, model) == built
    assert stand_ins.real(built) == real
    assert stand_ins.real(real) is None
    others = (OpenMirroringRelation, StandIns().relation_class())
    assert [each.create_from(model, model).identifier for each in others] == ["Orders"] * 2

    assert stand_ins.take_all() == [built]
    assert relations.create_from(model, model) == real
