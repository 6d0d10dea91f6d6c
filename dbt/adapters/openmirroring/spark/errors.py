"""The useful part of Spark's errors, for messages to the user."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

from dbt.adapters.openmirroring.text.codes import with_code

# The parts to remove: the plan in an analysis error, the statement (dbt reports its file), and the
# JVM stack trace that Spark Connect adds.
_NOISE = re.compile(r"(;\n'.*|\n+== SQL.*|\n\nJVM stacktrace:.*|\n\tat .*)", re.DOTALL)

# the prefix that a Thrift server adds to a message
_WRAPPING = re.compile(r"^org\.apache\.hive\S+: Error running query: (\[\S+\] )?[\w.$]+: ")

# the error of a task, in the stack trace of the error that the task caused
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.*)", re.MULTILINE)

# what a user can do about an error, and the code of that message
_REMEDIES = (
    (
        # Hadoop knows the driver's name but not its class, or does not know the scheme
        re.compile(r'azurebfs\.\w+ not found|No FileSystem for scheme:? "?abfss?\b'),
        "This Spark has no driver for abfss (hadoop-azure). If it is to write to the landing "
        "zone, set `staging_location` in the profile.",
        "OM608",
    ),
    (
        # a Spark before version 4 cannot parse the arguments of a function in SQL
        re.compile(
            r"Syntax error at or near '\('\.\(line.*== SQL ==.*create or replace function",
            re.DOTALL,
        ),
        "Functions need Spark 4 or newer.",
        "OM607",
    ),
    (
        # a folder whose name is longer than file systems allow
        re.compile(r"Mkdirs failed to create \S*/[^/\s=]+=[^/\s]{200,}"),
        "A value of a column in `partition_by` is too long: Spark makes a folder of each value, "
        "and the name of a folder can have 255 bytes. Use another column, or a part of this one.",
        "",
    ),
)


def useful(text: str) -> str:
    """Return the useful part of a Spark error: its message, its cause and a remedy."""
    message = _NOISE.sub("", _WRAPPING.sub("", text)).strip()
    causes = [cause for cause in _CAUSE.findall(text)[-1:] if cause.rstrip(";") not in message]
    remedies = [with_code(told, code) for symptom, told, code in _REMEDIES if symptom.search(text)]
    return "\n".join([message, *causes, *remedies])


def explained(error: Py4JJavaError) -> str:
    """Return the messages of a Java error and its root cause.

    The message of a failed task alone does not say why the task failed.
    """
    cause = outermost = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    texts = (str(found.getMessage() or found.toString()) for found in (outermost, cause))
    return "\n".join(dict.fromkeys(texts))
