"""What Spark's errors tell a user."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

# The plan in an analysis error, the statement (dbt says where it is), and the JVM's stack that
# Spark Connect adds.
_NOISE = re.compile(r"(;\n'.*|\n+== SQL.*|\n\nJVM stacktrace:.*|\n\tat .*)", re.DOTALL)

# What a Thrift server puts before it.
_WRAPPING = re.compile(r"^org\.apache\.hive\S+: Error running query: (\[\S+\] )?[\w.$]+: ")


# What failed in a task, in the stack of what the task made fail.
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.*)", re.MULTILINE)

# A Spark that has no driver for OneLake: Hadoop knows the driver's name, or not even that.
_NO_DRIVER = re.compile(r'azurebfs\.\w+ not found|No FileSystem for scheme:? "?abfss?\b')
_WITHOUT_DRIVER = (
    "This Spark has no driver for abfss (hadoop-azure). If it is to write to the landing zone, "
    "set `staging_location` in the profile."
)

# A Spark before 4 stumbles over the arguments of a function in SQL.
_NO_FUNCTION = re.compile(
    r"Syntax error at or near '\('\.\(line.*== SQL ==.*create or replace function", re.DOTALL
)
_WITHOUT_FUNCTION = "Functions need Spark 4 or newer."

_REMEDIES = ((_NO_DRIVER, _WITHOUT_DRIVER), (_NO_FUNCTION, _WITHOUT_FUNCTION))


def told(text: str) -> str:
    """What is of use in an error of Spark."""
    told = _NOISE.sub("", _WRAPPING.sub("", text)).strip()
    causes = [cause for cause in _CAUSE.findall(text)[-1:] if cause.rstrip(";") not in told]
    remedies = [remedy for symptom, remedy in _REMEDIES if symptom.search(text)]
    return "\n".join([told, *causes, *remedies])


def explained(error: Py4JJavaError) -> str:
    """What the JVM says, and what it says of the cause: a task that failed does not tell why."""
    cause = outermost = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    texts = (str(found.getMessage() or found.toString()) for found in (outermost, cause))
    return "\n".join(dict.fromkeys(texts))
