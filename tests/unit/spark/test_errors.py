"""What of Spark's errors is of use."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.spark.errors import told


@pytest.mark.parametrize(
    "error",
    [
        "Class org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem not found",
        "Class org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem not found",
        'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "abfss"',
        "No FileSystem for scheme: abfss",
    ],
)
def test_a_spark_without_a_driver_for_onelake_is_told_the_way_out(error: str) -> None:
    assert "`staging_location`" in told(f"org.apache.spark.SparkException: {error}\n\tat a.b.C")


@pytest.mark.parametrize(
    "error", ['No FileSystem for scheme "s3a"', "abfss://shop@onelake/orders was not found"]
)
def test_other_errors_have_no_such_way_out(error: str) -> None:
    assert told(error) == error
