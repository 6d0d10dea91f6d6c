"""A statement of Livy: code that is sent to a session, waited for, and has printed something."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.spark.livy.client import LivyClient, LivyError, Statement

# requests for the state of a statement before the session itself is checked
_QUESTIONS = 10


class StatementError(LivyError):
    """A statement failed in Livy, not in Spark.

    Args:
        why: what Livy says, in sentences
        is_sent: whether it may have been carried out
        status: the HTTP status; None without an answer
    """

    def __init__(self, why: str, is_sent: bool, status: int | None = None) -> None:
        super().__init__(self._text(why, is_sent), status)
        self.why = why
        self.is_sent = is_sent

    def of(self, is_sent: bool) -> StatementError:
        """Return the same error of another statement that waited for the same answer."""
        return type(self)(self.why, is_sent, self.status)

    def _text(self, why: str, is_sent: bool) -> str:
        if not is_sent:
            return why
        return f"{why} It is not known whether the statement was carried out; it was not repeated."


class SessionEndedError(StatementError):
    """The Livy session has ended, so dbt's connections have lost their Spark sessions."""

    def _text(self, why: str, is_sent: bool) -> str:
        told = super()._text(why, is_sent) if is_sent else f"{why} The statement was not sent."
        return f"{told} The next node gets a new session; run this one again."


def session_ended(session: str, why: str, is_sent: bool) -> SessionEndedError:
    return SessionEndedError(f"Livy's session {session} has ended ({why}).", is_sent)


def run(client: LivyClient, session: str, code: str, pause: Callable[[], None]) -> str:
    """Run code in a session and return the text that it prints.

    Args:
        pause: waits between two requests for the state; it may raise to cancel the statement

    Raises:
        SessionEndedError: if the session has ended
        StatementError: if Livy refuses a request, or cannot be reached
        DbtRuntimeError: if the statement was cancelled in Livy
    """
    number = None
    try:
        number = client.submit(session, code)
        statement = _wait(client, session, number, pause)
    except SessionEndedError:
        raise
    except LivyError as error:
        # A refused statement was not carried out. Without an answer, or with a server error,
        # it may have been.
        is_sent = number is not None or (error.status or 500) >= 500
        _check(client, session, is_sent, otherwise=error)
        raise StatementError(error.msg, is_sent, error.status) from None
    if statement.state == "cancelled":
        raise DbtRuntimeError("The statement was cancelled in Livy.")
    if statement.error.startswith("NameError: name 'openmirroring_"):
        raise session_ended(session, "its Python was started anew", is_sent=True)
    if statement.error or statement.state == "error":
        raise StatementError(f"Livy could not run the statement: {statement.error}", False)
    return statement.printed or ""


def _wait(client: LivyClient, session: str, number: int, pause: Callable[[], None]) -> Statement:
    questions = lacking = 0
    while True:
        try:
            statement = client.statement(session, number)
        except LivyError as error:
            # Fabric may not yet find a statement that it has just accepted
            if error.status != 404 or questions > _QUESTIONS:
                raise
            _check(client, session, is_sent=True)
            statement = Statement("waiting")
        if statement.state in ("error", "cancelled"):
            return statement
        if statement.state == "available":
            # Livy reads the output before the state, which may change in between
            lacking += 1
            if statement.error or statement.printed is not None or lacking > _QUESTIONS:
                return statement
        questions += 1
        if questions % _QUESTIONS == 0:
            # Fabric may report a statement as running forever after its session has ended
            _check(client, session, is_sent=True)
        try:
            pause()
        except BaseException:  # includes Ctrl-C in this thread
            with suppress(LivyError):
                client.cancel(session, number)
            raise


def _check(
    client: LivyClient, session: str, is_sent: bool, otherwise: LivyError | None = None
) -> None:
    """Raise SessionEndedError if a session has ended; `otherwise` if its state is unknown."""
    try:
        state = client.state(session)
    except LivyError as error:
        raise otherwise or error from None
    if state.has_ended:
        raise session_ended(session, state.told, is_sent)
