"""The tie between the embedded Spark's metastore, its warehouse, and their place.

The metastore has the absolute paths of all tables. In a project that was copied, it would let
Spark read and replace the tables of the original. A metastore that was restored without its
warehouse, or the other way round, would let Spark find tables without rows.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.exceptions.connection import FailedToConnectError
from py4j.protocol import Py4JJavaError

METASTORE = "metastore_db"
WAREHOUSE = "warehouse"

_RECORD = "openmirroring.json"

# the login that Hive gives Derby if nobody has set another
_LOGIN = ("APP", "mine")

# the columns of the metastore that have paths, as those that Hive's metatool changes
_PATHS = (
    ("DBS", "DB_LOCATION_URI"),
    ("SDS", "LOCATION"),
    ("SERDE_PARAMS", "PARAM_VALUE"),
)


class SparkPlaceError(FailedToConnectError):
    """The files of the embedded Spark do not belong together, or not to this place."""


@dataclass(frozen=True)
class _Record:
    """The record that the metastore and the warehouse each have in a file of their own.

    Args:
        home: the folder that both were in when Spark used them last
        ties: random texts, renewed with each start of Spark. Folders that were used together share
            one
    """

    home: str
    ties: tuple[str, ...]

    @classmethod
    def read(cls, folder: Path) -> _Record:
        """Read the record of a folder. Without one, the only text is empty.

        Raises:
            SparkPlaceError: if it cannot be read
        """
        path = folder / _RECORD
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            home, ties = found["home"], found["ties"]
            if isinstance(home, str) and ties and all(isinstance(tie, str) for tie in ties):
                return cls(home, tuple(ties))
        except FileNotFoundError:
            return cls("", ("",))
        except (OSError, ValueError, TypeError, KeyError):
            pass
        raise SparkPlaceError(
            f"{path} is damaged, so nobody knows whether the metastore and the warehouse of this "
            f"project's Spark belong together. Nothing was changed. Restore {folder.parent} from "
            f"a backup. If metastore and warehouse are as the last run has left them, delete both "
            f"{_RECORD}: it is in {METASTORE} and in {WAREHOUSE}."
        )

    def write(self, folder: Path) -> None:
        content = json.dumps({"home": self.home, "ties": self.ties})
        written = folder / f"{_RECORD}.new"
        written.write_text(content, encoding="utf-8")
        written.replace(folder / _RECORD)


class SparkPlace:
    """The folder of the embedded Spark's files.

    Args:
        home: the folder, with links resolved
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._metastore = home / METASTORE
        self._warehouse = home / WAREHOUSE

    def check(self) -> None:
        """Check, before Spark starts, that metastore and warehouse were used together last.

        Raises:
            SparkPlaceError: if one of them is missing, or is of another time than the other
        """
        tables = _has_folders(self._warehouse)
        if not self._metastore.exists():
            if tables:
                raise self._error(f"{self._metastore} is gone, but {self._warehouse} has tables")
            return
        of_metastore, of_warehouse = _Record.read(self._metastore), _Record.read(self._warehouse)
        if of_metastore.home and not self._warehouse.exists():
            raise self._error(f"{self._warehouse} is gone, but {self._metastore} is there")
        # neither has a record yet if an earlier version has made them
        if not set(of_metastore.ties).intersection(of_warehouse.ties):
            raise self._error(
                f"{self._metastore} and {self._warehouse} were not used together last: one of "
                "them was restored, copied or replaced without the other"
            )

    def relocate(self, jvm: Any) -> Path | None:
        """Correct the paths in the metastore if it was created, or used last, at another place.

        The metastore takes all of them, or none. It must not be open yet.

        Args:
            jvm: py4j's view of a JVM that has Derby

        Returns:
            the folder that it was in; None if it is the same one

        Raises:
            SparkPlaceError: if the files of some tables name their place themselves
        """
        if not self._metastore.exists():
            return None
        if _Record.read(self._metastore).home == str(self._home):
            return None
        url = f"jdbc:derby:;databaseName={self._metastore}"
        connection = jvm.java.sql.DriverManager.getConnection(url, *_LOGIN)
        try:
            connection.setAutoCommit(False)
            former = self._relocated(connection)
            connection.commit()
        finally:
            connection.close()
            _shut_down(jvm, url)
        return former

    def _relocated(self, connection: Any) -> Path | None:
        rows = connection.createStatement().executeQuery(
            "select DB_LOCATION_URI from DBS where NAME = 'default'"
        )
        found = rows.getString(1) if rows.next() else ""
        begins, _, name = found.rpartition("/")
        if name != WAREHOUSE or begins == f"file:{self._home}":
            return None  # it is here, or somewhere where the profile has put it
        old, new = f"{begins}/", f"file:{self._home}/"
        self._refuse_fixed_tables(connection, old)
        for table, column in _PATHS:
            statement = connection.prepareStatement(
                f"update {table} set {column} = cast(? as varchar(4000)) || "
                f"substr({column}, {len(old) + 1}) "
                f"where cast(substr({column}, 1, {len(old)}) as varchar(4000)) = ?"
            )
            statement.setString(1, new)
            statement.setString(2, old)
            statement.executeUpdate()
        return Path(begins.removeprefix("file:"))

    def _refuse_fixed_tables(self, connection: Any, old: str) -> None:
        statement = connection.prepareStatement(
            "select DBS.NAME, TBLS.TBL_NAME from TBLS "
            "join DBS on DBS.DB_ID = TBLS.DB_ID join SDS on SDS.SD_ID = TBLS.SD_ID "
            "join TABLE_PARAMS on TABLE_PARAMS.TBL_ID = TBLS.TBL_ID "
            "where TABLE_PARAMS.PARAM_KEY = 'metadata_location' "
            f"and cast(substr(SDS.LOCATION, 1, {len(old)}) as varchar(4000)) = ?"
        )
        statement.setString(1, old)
        rows = statement.executeQuery()
        if rows.next():
            raise SparkPlaceError(
                f"This project was copied or moved from {Path(old.removeprefix('file:')).parent}, "
                f"and its Spark has Iceberg tables, e.g. {rows.getString(1)}.{rows.getString(2)}, "
                "whose own files name that place. Nothing was changed. Move the project back; or "
                f"delete {self._home}, and run with --full-refresh."
            )

    def tie(self) -> None:
        """Record that metastore and warehouse are used together, once Spark has started.

        A process that is killed in between leaves them with a text that both have.
        """
        if not self._metastore.exists():
            return  # the profile has put it elsewhere
        self._warehouse.mkdir(exist_ok=True)
        old, new = _Record.read(self._warehouse).ties[0], uuid.uuid4().hex
        only = _Record(str(self._home), (new,))
        _Record(str(self._home), (new, old)).write(self._metastore)
        only.write(self._warehouse)
        only.write(self._metastore)

    def _error(self, finding: str) -> SparkPlaceError:
        return SparkPlaceError(
            f"{finding}. Spark would have tables whose rows are missing, or are not theirs. "
            "Nothing was changed. Put back both from the same backup. If there is none, move what "
            f"is left of them out of {self._home}: then Spark begins without tables, and each "
            "table that was published is refused until `dbt run --full-refresh` computes it anew."
        )


def is_at_home(settings: Mapping[str, str], defaults: Mapping[str, str]) -> bool:
    """Check whether settings leave metastore and warehouse where the embedded Spark has them."""
    names = ("spark.sql.warehouse.dir", "spark.hadoop.javax.jdo.option.ConnectionURL")
    return all(settings[name] == defaults[name] for name in names)


def _has_folders(folder: Path) -> bool:
    return folder.is_dir() and any(path.is_dir() for path in folder.iterdir())


def _shut_down(jvm: Any, url: str) -> None:
    """Let Derby release a database. It confirms that by an exception."""
    with suppress(Py4JJavaError):
        jvm.java.sql.DriverManager.getConnection(f"{url};shutdown=true", *_LOGIN)
