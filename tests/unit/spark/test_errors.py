"""The part of Spark's errors that helps a user."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.spark.errors import useful


@pytest.mark.parametrize(
    "error",
    [
        "Class org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem not found",
        "Class org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem not found",
        'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "abfss"',
        "No FileSystem for scheme: abfss",
    ],
)
def test_the_error_of_a_spark_without_a_driver_for_onelake_has_the_way_out(error: str) -> None:
    told = useful(f"org.apache.spark.SparkException: {error}\n\tat a.b.C")

    assert "set `staging_location` in the profile. [OM608: " in told


FUNCTION = "\n\n== SQL ==\n/* dbt */\ncreate or replace function `a`.`f` (`x` int)\nreturn ((\n"
SYNTAX = "[PARSE_SYNTAX_ERROR] Syntax error at or near '('."


def test_the_error_of_a_spark_without_functions_in_sql_has_the_way_out() -> None:
    error = f"{SYNTAX}(line 2, pos 36)"

    assert "\nFunctions need Spark 4 or newer. [OM607: " in useful(error + FUNCTION)
    assert useful(error) == error


@pytest.mark.parametrize(
    "error",
    [
        'No FileSystem for scheme "s3a"',
        "abfss://shop@onelake/orders was not found",
        # a mistake in a function of Spark 4
        f"{SYNTAX} SQLSTATE: 42601 (line 3, pos 8)",
    ],
)
def test_other_errors_have_no_such_way_out(error: str) -> None:
    assert useful(error) == useful(error + FUNCTION) == error
