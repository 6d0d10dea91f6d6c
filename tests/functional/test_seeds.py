"""Seeds: every value arrives as it is in the file."""

from __future__ import annotations

import pytest

from tests.functional.project import Project


@pytest.mark.core
def test_seeds_keep_nulls_large_integers_quotes_and_timestamps(project: Project) -> None:
    project.write(
        "seeds/orders.csv",
        "id,name,big,at,day,ok,price\n"
        "1,O'Brien,9007199254740993,2024-01-01T10:00:00.123456,2024-01-01,true,1.5\n"
        '2,,,,,,\n3,"back\\slash ""quoted"", comma",-9007199254740993,'
        "2024-12-31T23:59:59.999999,1999-12-31,false,-2.25\n",
    )

    response = project.run(command="seed")

    assert (response["publication"], response["rows_inserted"]) == ("initial", 3)
    project.assert_mirrored()
    rows = [dict(row) for row in sorted(project.relation())]
    assert [len(row) for row in rows] == [7, 7, 1]
    values = {row["name"]: row for row in rows if "name" in row}
    assert values["str O'Brien"]["big"] == "int 9007199254740993"
    assert values["str O'Brien"]["at"] == "2024-01-01T10:00:00.123456"
    assert 'str back\\slash "quoted", comma' in values


def test_numbers_with_an_exponent_nan_and_infinity_are_doubles(project: Project) -> None:
    project.write(
        "seeds/orders.csv",
        "id,large,none,most,whole,point\n1,1e5,nan,inf,2,1.0\n2,2,1,-inf,12,2\n3,,,,,\n",
    )

    project.run(command="seed")

    project.assert_mirrored()
    columns = project.sql(f"describe {project.schema}.orders")
    types = {column["col_name"]: column["data_type"] for column in columns}
    assert types == {
        **dict.fromkeys(("id", "whole"), "bigint"),
        **dict.fromkeys(("large", "none", "most", "point"), "double"),
    }
    [row] = project.sql(f"select large, none, most from {project.schema}.orders where id = 1")
    assert (row[0], str(row[1]), row[2]) == (100000.0, "nan", float("inf"))


def test_a_seed_of_twenty_thousand_rows_arrives_whole(project: Project) -> None:
    rows = "\n".join(f"{i},name {i}" for i in range(20_000))
    project.write("seeds/orders.csv", f"id,name\n{rows}\n")

    assert project.run(command="seed")["rows_inserted"] == 20_000
    project.assert_mirrored()
