"""The tie between the embedded Spark's metastore, its warehouse, and their place.

The metastore has the absolute paths of all tables, and so have Iceberg's files. In a project that
was copied, it would let Spark read and replace the tables of the original. A metastore that was
restored without its warehouse, or the other way round, would let Spark find tables without rows.

Both have a record in a file of their own: the folder that they were in when Spark used them last,
and random texts, the ties, which are renewed with each start of Spark. Folders that were used
together share one.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbt.adapters.openmirroring.disk.patience import patiently
from dbt.adapters.openmirroring.text.errors import SparkError

METASTORE = "metastore_db"
WAREHOUSE = "warehouse"

_RECORD = "openmirroring.json"

# Derby writes it last when it makes a database, and opens none without it
_MADE = "service.properties"


class SparkPlaceError(SparkError):
    """The files of the embedded Spark do not belong together, or not to this place."""


def is_at_home(settings: Mapping[str, str], defaults: Mapping[str, str]) -> bool:
    """Check whether settings leave metastore and warehouse where the embedded Spark has them."""
    names = ("spark.sql.warehouse.dir", "spark.hadoop.javax.jdo.option.ConnectionURL")
    return all(settings[name] == defaults[name] for name in names)


def begin_anew(home: Path) -> None:
    """Remove what is left of a first start that was killed while Derby made the metastore.

    Derby can neither open it nor make another one in its folder. It has no table yet. A metastore
    that Derby has made, Hive completes.
    """
    metastore, warehouse = home / METASTORE, home / WAREHOUSE
    if _has_tables(warehouse):
        return  # then somebody has to say what becomes of them
    made = metastore / _MADE
    is_made = (metastore / _RECORD).exists() or (made.exists() and made.stat().st_size)
    if metastore.is_dir() and not is_made:
        patiently(shutil.rmtree, metastore)
    if not metastore.exists():
        (warehouse / _RECORD).unlink(missing_ok=True)  # it is tied to one that is gone


def check_place(home: Path) -> None:
    """Check, before Spark starts, that metastore and warehouse were used together, and here.

    Args:
        home: the folder of Spark's files, with links resolved

    Raises:
        SparkPlaceError: if one of them is missing, or is of another time than the other, or if
            both were used in another folder last
    """
    metastore, warehouse = home / METASTORE, home / WAREHOUSE
    finding, code = "", "OM408"
    if not metastore.exists():
        if _has_tables(warehouse):
            finding = f"{metastore} is gone, but {warehouse} has tables"
    else:
        (used_in, ties), (_, others) = _read(metastore), _read(warehouse)
        if used_in and not warehouse.exists():
            finding = f"{warehouse} is gone, but {metastore} is there"
        elif not set(ties).intersection(others):
            finding = (
                f"{metastore} and {warehouse} were not used together last: one of them was "
                "restored, copied or replaced without the other"
            )
            code = "OM409"
        elif used_in not in ("", str(home)):
            raise SparkPlaceError(
                f"{home} was {used_in} when Spark used it last, and its tables name that place. "
                "Nothing was changed. Move the project back. Or remove "
                f"{home}: then Spark begins without tables. `restore_baseline: true` in the "
                "profile brings back those that were published, from the mirrored tables. "
                "Without it, they are refused until `dbt run --full-refresh` computes them anew.",
                code="OM410",
            )
    if finding:
        raise SparkPlaceError(
            f"{finding}. Spark would have tables whose rows are missing, or are not theirs. "
            "Nothing was changed. Put back both from the same backup. If there is none, move what "
            f"is left of them out of {home}: then Spark begins without tables, and each "
            "table that was published is refused until `dbt run --full-refresh` computes it anew.",
            code=code,
        )


def _has_tables(warehouse: Path) -> bool:
    return warehouse.is_dir() and any(path.is_dir() for path in warehouse.iterdir())


def tie(home: Path) -> None:
    """Record that metastore and warehouse are used together, once Spark has started.

    A process that is killed in between leaves them with a text that both have.
    """
    metastore, warehouse = home / METASTORE, home / WAREHOUSE
    if not metastore.exists():
        return  # the profile has put it elsewhere
    warehouse.mkdir(exist_ok=True)
    old, new = _read(warehouse)[1][0], uuid.uuid4().hex
    _write(metastore, home, [new, old])
    _write(warehouse, home, [new])
    _write(metastore, home, [new])


def _read(folder: Path) -> tuple[str, list[str]]:
    """Return the home and the ties in the record of a folder. Without one, the tie is empty."""
    path = folder / _RECORD
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        home, ties = found["home"], found["ties"]
        if isinstance(home, str) and ties and all(isinstance(tie, str) for tie in ties):
            return home, list(ties)
    except FileNotFoundError:
        return "", [""]
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise SparkPlaceError(
        f"{path} is damaged, so dbt cannot tell whether the metastore and the warehouse of this "
        f"project's Spark belong together. Nothing was changed. Restore {folder.parent} from "
        f"a backup. If metastore and warehouse are as the last run has left them, delete both "
        f"{_RECORD}: it is in {METASTORE} and in {WAREHOUSE}."
    )


def _write(folder: Path, home: Path, ties: Sequence[str]) -> None:
    written = folder / f"{_RECORD}.new"
    written.write_text(json.dumps({"home": str(home), "ties": ties}), encoding="utf-8")
    patiently(written.replace, folder / _RECORD)
