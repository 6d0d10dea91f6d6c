"""Formats of tables that Spark does not bring itself: settings, with jars from Maven Central."""

from __future__ import annotations

from pathlib import Path

import pyspark

# by version of Spark; the newest of either format for it
_DELTA = {
    "4.0": "io.delta:delta-spark_2.13:4.0.1",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}
_ICEBERG = {
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}


def format_settings(file_format: str, folder: Path) -> dict[str, str]:
    """Return the settings with which Spark has tables of a format.

    Args:
        folder: for a catalog

    Raises:
        KeyError: the format is not made for this Spark
    """
    version = ".".join(pyspark.__version__.split(".")[:2])
    if file_format == "delta":
        return {
            "spark.jars.packages": _DELTA[version],
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # 50 otherwise, for some rows of its log
            "spark.databricks.delta.snapshotPartitions": "2",
            # lets columns have any name
            "spark.databricks.delta.properties.defaults.columnMapping.mode": "name",
            # it remembers every table
            "spark.driver.memory": "4g",
        }
    if file_format == "iceberg":
        return {
            "spark.jars.packages": f"{_ICEBERG[version]},org.xerial:sqlite-jdbc:3.50.3.0",
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.defaultCatalog": "ice",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "jdbc",
            "spark.sql.catalog.ice.uri": f"jdbc:sqlite:{folder}/catalog.db",
            "spark.sql.catalog.ice.jdbc.schema-version": "V1",  # has views
            "spark.sql.catalog.ice.warehouse": f"{folder}/warehouse",
            # has all types
            "spark.sql.catalog.ice.table-default.format-version": "3",
            # as the tables of the other formats
            "spark.sql.catalog.ice.table-default.write.parquet.compression-codec": "snappy",
            "spark.driver.memory": "4g",
        }
    return {}
