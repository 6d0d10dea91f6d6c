"""Connections to Spark: finding the Spark of a run, opening sessions and translating errors."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from copy import copy
from multiprocessing.context import SpawnContext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from dbt.adapters.contracts.connection import (
    AdapterRequiredConfig,
    AdapterResponse,
    Connection,
    ConnectionState,
    LazyHandle,
)
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError, DbtRuntimeError
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from dbt.adapters.openmirroring.credentials import ConnectionMethod, OpenMirroringCredentials
from dbt.adapters.openmirroring.dbt_core.flags import (
    is_in_command,
    keep_out_of_git,
    project_folder,
    target_folder,
    uses_spark,
)
from dbt.adapters.openmirroring.service.authentication import token_credential
from dbt.adapters.openmirroring.spark.embedded.jvm import launch_jvm_of_next_context
from dbt.adapters.openmirroring.spark.embedded.start import SparkSetup, process_spark
from dbt.adapters.openmirroring.spark.errors import explained, useful
from dbt.adapters.openmirroring.spark.session import (
    SESSION_SETTINGS,
    PySparkHandle,
    SessionHandle,
    is_query,
    silence_pyspark,
)
from dbt.adapters.openmirroring.types.crossing import received, selection, with_exact_numbers

if TYPE_CHECKING:
    import agate

    from dbt.adapters.openmirroring.spark.livy.session import LivySession

logger = AdapterLogger("OpenMirroring")


class OpenMirroringConnectionManager(SparkConnectionManager):
    """Connections that share one Spark per run, each with a session of its own."""

    TYPE = "openmirroring"

    def __init__(self, profile: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(profile, mp_context)
        self._spark: SparkSession | None = None
        self._settings: dict[str, str] = {}
        self._brought: SparkSession | None = None
        self._is_server_there = False
        self._spark_major: int | None = None
        self._has_metastore: bool | None = None
        self._livy: LivySession | None = None
        # the connections of threads that are in a session of their own
        self._users: dict[Hashable, Connection] = {}
        self.embedded_warehouse: Path | None = None

    @property
    def credentials(self) -> OpenMirroringCredentials:
        return cast(OpenMirroringCredentials, self.profile.credentials)

    # dbt-spark's `open` is a class method, which cannot store the Spark that it found
    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        if connection.state == ConnectionState.OPEN:
            return connection
        match connection.credentials.method:
            case ConnectionMethod.SESSION:
                connection.handle = self._new_session()
            case ConnectionMethod.CONNECT:
                connection.handle = self._new_remote_session(connection.credentials)
            case ConnectionMethod.LIVY:
                connection.handle = self._new_livy_session(connection.credentials)
            case _:
                return super().open(connection)
        connection.state = ConnectionState.OPEN
        return connection

    def _new_session(self) -> SessionHandle:
        with self.lock:
            if self._spark is None:
                self._spark, self._settings = self._find_spark()
        try:
            return PySparkHandle(self._spark.newSession(), self._settings)
        except (Py4JError, ConnectionError):
            process_spark.check_alive(2)
            raise

    def _new_remote_session(self, credentials: OpenMirroringCredentials) -> SessionHandle:
        server = credentials.server
        with self.lock:
            if not self._is_server_there:
                silence_pyspark()
                server.wait_for_answer()
                self._is_server_there = True
        return PySparkHandle(server.new_session(), credentials.server_side_parameters)

    def _new_livy_session(self, credentials: OpenMirroringCredentials) -> SessionHandle:
        # slow to import, and only `method: livy` needs it
        from dbt.adapters.openmirroring.spark.livy.client import LivyClient
        from dbt.adapters.openmirroring.spark.livy.session import LivyHandle, LivySession

        server, given = credentials.livy_server, credentials
        with self.lock:
            if self._livy is None:
                self._livy = LivySession(
                    LivyClient(server, token_credential(given) if server.is_fabric else None),
                    given.session_options,
                    records=target_folder(self.profile) / "livy",
                    stays=given.reuse_session,
                    threads=self.profile.threads,
                    identity=(given.user, given.authentication, given.tenant_id, given.client_id),
                )
        return LivyHandle(self._livy, credentials.server_side_parameters)

    def _find_spark(self) -> tuple[SparkSession, dict[str, str]]:
        """Return a session of the Spark of this run, and the settings for each new session.

        It is the session that this process already has, the Spark that the profile or
        `spark-submit` configures, or the embedded one, in this order.
        """
        parameters = self.credentials.server_side_parameters
        if is_remote():
            raise FailedToConnectError(
                "This process has a session of Spark Connect. Set `method: connect` and `host` in "
                "the profile: then each node gets one of its own."
            )
        if _is_there() and not process_spark.is_running:
            spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
            self._brought = spark
            settings = _settings_of(spark) | parameters
        elif setup := self._embedded:
            self.embedded_warehouse = setup.home / "warehouse"
            spark = process_spark.session(self, setup)
            keep_out_of_git(setup.home, setup.project)
            return spark, {}
        else:
            launch_jvm_of_next_context(parameters)
            builder = SparkSession.builder.enableHiveSupport()
            for key, value in parameters.items():
                builder = builder.config(key, value)
            spark, settings = builder.getOrCreate(), {}
        return spark, settings | SESSION_SETTINGS

    @property
    def _embedded(self) -> SparkSetup | None:
        """The embedded Spark of this target; None if the profile or `spark-submit` names one."""
        given, settings = self.credentials, dict(self.credentials.server_side_parameters)
        is_configured = "spark.master" in settings or "PYSPARK_GATEWAY_PORT" in os.environ
        if given.method != ConnectionMethod.SESSION or is_remote() or is_configured:
            return None
        project = project_folder(self.profile)
        return SparkSetup(project, settings, given.spark_folder, given.idle_seconds)

    @property
    def will_embed(self) -> bool:
        """Whether the first statement will find the embedded Spark. Ask before it starts."""
        return self._embedded is not None and (not _is_there() or process_spark.is_running)

    def start_early(self) -> None:
        """Start the embedded Spark while dbt parses, if the command will use it."""
        # `_is_there` last: where this process is one of Spark Connect, it imports the client
        if uses_spark() and is_in_command() and (setup := self._embedded) and not _is_there():
            process_spark.start_early(self, setup)

    def own_spark(self) -> SparkSetup:
        """Return the embedded Spark of this target. Refuse a target that uses another one."""
        setup = self._embedded
        if setup is None or not self.will_embed:
            raise DbtConfigError(
                "This target does not use the embedded Spark, but another one. Nothing was done."
            )
        return setup

    @contextmanager
    def own_session(self) -> Iterator[None]:
        """Run the statements of this thread in sessions in which no code of the user has run.

        Hooks and Python models may set anything in the session of the connection, for example how
        files are written. A publication must not depend on that. Within such a block, this one
        changes nothing.
        """
        key = self.get_thread_identifier()
        if key in self._users:
            yield
            return
        self._begin_own(key, self.get_thread_connection())
        try:
            yield
        finally:
            self._end_own(key)

    def begin_anew(self) -> None:
        """Let the connection of this thread go on in a session in which no code has run."""
        connection = self.get_thread_connection()
        self.close(connection)
        connection.state, connection.handle = ConnectionState.INIT, LazyHandle(self.open)

    @contextmanager
    def users_session(self) -> Iterator[None]:
        """Run code of the user in the session of the connection, inside of `own_session`.

        Afterwards, a new session takes the place of the old one, which would remember the files of
        tables that the code has changed.
        """
        key = self.get_thread_identifier()
        if key not in self._users:  # it is the session already
            yield
            return
        users = self._end_own(key)
        try:
            yield
        finally:
            self._begin_own(key, users)

    def _begin_own(self, key: Hashable, users: Connection) -> None:
        def open_own(connection: Connection) -> Connection:
            opened = self.open(connection)
            is_used = users.state == ConnectionState.OPEN
            if is_used and isinstance(opened.handle, PySparkHandle):
                opened.handle.report_to(users.handle)
            return opened

        own = copy(users)
        own.state, own.handle = ConnectionState.INIT, LazyHandle(open_own)
        with self.lock:
            self._users[key], self.thread_connections[key] = users, own

    def _end_own(self, key: Hashable) -> Connection:
        with self.lock:
            own, users = self.thread_connections[key], self._users.pop(key)
            self.thread_connections[key] = users
        if own.state == ConnectionState.OPEN:
            own.handle.close()
        return users

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """Execute a statement completely, even a query whose rows nobody fetches."""
        connection = self.get_thread_connection()
        if connection.state != ConnectionState.OPEN:
            with self.exception_handler(sql):
                _ = connection.handle  # the first one waits for Spark's start
        try:
            is_own = self.get_thread_identifier() in self._users
            if (
                fetch
                and is_query(sql)
                and not (is_own or isinstance(connection.handle, SessionHandle))
            ):
                return self._fetch_from_server(sql, limit)
            response, table = super().execute(sql, auto_begin, fetch, limit)
        # rows are computed when they are fetched, which dbt does without its handler
        except (PySparkException, Py4JError, ConnectionError):
            with self.exception_handler(sql):
                raise
        if not fetch and isinstance(connection.handle, SessionHandle):
            with self.exception_handler(sql):
                connection.handle.run_to_end(sql)
        return response, table

    def _fetch_from_server(
        self, sql: str, limit: int | None
    ) -> tuple[AdapterResponse, agate.Table]:
        """Execute a query of the user on a server, which converts its values (`selection`).

        Spark is asked for the types before. Other handles have them with the result.
        """
        query = sql.strip().rstrip(";")
        try:
            _, described = super().execute(f"describe query {query}", fetch=True)
        except DbtRuntimeError as error:  # it is no query, or has an error of its own
            logger.debug(f"Spark does not tell the types of a query: {error}")
            return super().execute(sql, fetch=True, limit=limit)
        types = [str(dtype) for _, dtype, *_ in described.rows]
        selected = selection(types)
        if not selected:
            return super().execute(sql, fetch=True, limit=limit)
        named, converted = ", ".join(selected), ", ".join(selected.values())
        query = f"select {converted} from (\n{query}\n) as t({named})"
        response, sent = super().execute(query, fetch=True, limit=limit)
        rows = received(types, sent.rows)
        names = [(name,) for name, *_ in described.rows]
        cursor = SimpleNamespace(description=names, fetchall=lambda: rows)
        return response, self.get_result_from_cursor(cursor, None)

    @classmethod
    def get_result_from_cursor(cls, cursor: Any, limit: int | None) -> agate.Table:
        return with_exact_numbers(super().get_result_from_cursor(cursor, limit))

    def cancel(self, connection: Connection) -> None:
        """Cancel the statement of a connection.

        dbt cancels one connection after another, so an error would leave the others running.
        """
        try:
            super().cancel(connection)
        except Exception as error:
            logger.debug(f"{connection.name} was not cancelled: {error}")

    def refresh(self, table: str) -> None:
        """Discard the cached file list of a table in the session that the user has provided."""
        if self._brought:
            self._brought.catalog.refreshTable(table)

    def spark_major(self) -> int:
        """Return the major version of Spark, for which only the first call asks."""
        if self._spark_major is None:
            _, told = self.execute("select version()", fetch=True)
            self._spark_major = int(str(told.rows[0][0]).partition(".")[0])
        return self._spark_major

    def has_metastore(self) -> bool:
        """Return whether Spark's catalog is a metastore, for which only the first call asks."""
        if self._has_metastore is None:
            _, told = self.execute("set spark.sql.catalogImplementation", fetch=True)
            self._has_metastore = str(told.rows[0][1]) == "hive"
        return self._has_metastore

    def cleanup_all(self) -> None:
        super().cleanup_all()
        self._spark = self._spark_major = self._has_metastore = None
        if self._livy:
            self._livy.end()
            self._livy = None
        process_spark.release(self)

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Turn Spark's errors into dbt errors with Spark's message.

        JVM stack traces go to the debug log.
        """
        try:
            yield
        except (DbtDatabaseError, PySparkException, Py4JJavaError) as error:
            logger.debug(f"Error while running:\n{sql}\n{error}")
            process_spark.check_alive(0)  # a JVM that is ending fails with errors of its own
            if isinstance(error, Py4JJavaError):  # a Java error without a PySpark class
                text = explained(error)
            else:  # Thrift returns message and stack trace as one text
                text = str(error.msg if isinstance(error, DbtDatabaseError) else error)
            raise DbtDatabaseError(useful(text)) from None
        except DbtRuntimeError:
            raise
        except (Py4JError, ConnectionError) as error:
            logger.debug(f"Error while running:\n{sql}\n{error}")
            process_spark.check_alive(2)
            raise DbtDatabaseError(str(error)) from None
        except Exception:
            with super().exception_handler(sql):
                raise


def _is_there() -> bool:
    """Check whether this process already has a Spark."""
    return bool(SparkSession.getActiveSession() or SparkContext._active_spark_context)


def _settings_of(spark: SparkSession) -> dict[str, str]:
    """Return the settings that were changed in a session, which a new session lacks.

    Spark registers only a part of the settings. Keys of storage accounts and catalogs may have any
    name. So the new session shows which settings can be set.
    """
    other = spark.newSession().conf
    changed = {}
    for row in spark.sql("SET").collect():
        # not the value of the row, which Spark redacts if it is a secret
        key, value = row["key"], spark.conf.get(row["key"], None)
        if value is None or value == other.get(key, None):
            continue
        try:
            other.set(key, value)
        except (PySparkException, Py4JJavaError):
            logger.debug(f"Spark does not let a session set `{key}`")
        else:
            changed[key] = value
    return changed
