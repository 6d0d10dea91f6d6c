"""Generated tables: columns of all types that land, nested in each other, with unusual values."""

from __future__ import annotations

from random import Random

# values by type, as SQL
INTEGERS = {
    "tinyint": ("-128", "0", "127"),
    "smallint": ("-32768", "32767"),
    "int": ("-2147483648", "7", "2147483647"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
}
FLOATS = {
    "float": ("'nan'", "'-0.0'", "'infinity'", "'-infinity'", "1.1", "3.4028235E38", "1.4E-45"),
    "double": ("'nan'", "'-0.0'", "'infinity'", "0.1", "4.9E-324", "1.7976931348623157E308"),
}
DECIMALS = {
    "decimal(5,2)": ("-999.99", "0.01"),
    "decimal(38,18)": ("'12345678901234567890.123456789012345678'", "0.000000000000000001"),
    "decimal(38,0)": ("'-99999999999999999999999999999999999999'", "1"),
}
TEXTS = {
    "string": (
        *("''", "'null'", "'NULL'", "' both '", "'\\\"quoted\\\"'", "'it\\'s'", "'back\\\\slash'"),
        *(
            "'line\\nbreak'",
            "'tab\\t'",
            "'ünï😀'",
            "'{\\\"a\\\": 1}'",
            "'a,b;c|d'",
            "'2024-01-01'",
        ),
    ),
    "string collate UTF8_LCASE": ("'Aa'", "'aA'"),
    "varchar(5)": ("'ab'", "'abcde'"),
}
BYTES = {"binary": ("x''", "x'00ff10'", "x'616263'")}
TIMES = {
    "date": ("date'0001-01-01'", "date'1582-10-10'", "date'1970-01-01'", "date'9999-12-31'"),
    "timestamp": (
        *("timestamp'0002-01-01 00:00:00Z'", "timestamp'1582-10-10 12:34:56.789012Z'"),
        *("timestamp'2024-03-31 01:30:00Z'", "timestamp'9999-12-31 23:59:59.999999Z'"),
    ),
    "timestamp_ntz": (
        *("timestamp_ntz'0002-01-01 00:00:00'", "timestamp_ntz'1900-01-01 00:00:00.000001'"),
        *("timestamp_ntz'2024-03-31 02:30:00'", "timestamp_ntz'9999-12-31 23:59:59.999999'"),
    ),
}
SCALARS = {"boolean": ("true", "false"), **INTEGERS, **FLOATS, **TEXTS, **TIMES}
# delimited text has none of them
ONLY_PARQUET = {**DECIMALS, **BYTES}
# these land in a nested type only
NESTED = {
    "interval day to second": ("interval '-1 02:03:04.000005' day to second",),
    "interval year to month": ("interval '-1-2' year to month",),
    **DECIMALS,
    **BYTES,
}
# Spark has no collations in keys of maps
OF_KEYS = {name: values for name, values in {**SCALARS, **NESTED}.items() if "collate" not in name}
VARIANTS = {
    "variant": (
        *("parse_json('null')", "parse_json('[1, {\\\"a\\\": null}]')", "parse_json('1.50')"),
        *("parse_json('\\\"text\\\"')", "to_variant_object(array(date'2024-02-29'))"),
    )
}
NAMES = ("a", "b c", "it's", "x`y", "ünï", "p.q", "r:s,t")


class Generator:
    """Columns at random.

    Args:
        seed: the same one generates the same columns
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def model(self, columns: int, rows: int, in_text: bool) -> str:
        """Return the SQL of a model with an `id` and other columns.

        Args:
            in_text: whether it lands as delimited text
        """
        types = [self._type(in_text) for _ in range(columns)]
        selects = []
        for number in range(rows):
            values = [f"{self._value(type_)} as c{n}" for n, type_ in enumerate(types)]
            selects.append(f"select {number} as id, {', '.join(values)}")
        return "\nunion all ".join(selects)

    def _type(self, in_text: bool) -> str:
        if self._random.random() < 0.5:
            return self._nested(2)
        return self._pick(SCALARS if in_text else {**SCALARS, **ONLY_PARQUET})

    def _nested(self, depth: int) -> str:
        match self._random.choice(["array", "map", "struct", "variant"]):
            case "array":
                return f"array<{self._any(depth - 1)}>"
            case "map":
                return f"map<{self._key(depth - 1)},{self._any(depth - 1)}>"
            case "struct":
                names = self._random.sample(NAMES, self._random.randint(1, 3))
                fields = (f"{_quoted(name)}:{self._any(depth - 1)}" for name in names)
                return f"struct<{','.join(fields)}>"
        return "variant"

    def _any(self, depth: int) -> str:
        if depth and self._random.random() < 0.4:
            return self._nested(depth)
        return self._pick({**SCALARS, **NESTED})

    def _key(self, depth: int) -> str:
        if depth and self._random.random() < 0.2:
            return f"struct<{_quoted('k')}:{self._pick(OF_KEYS)}>"
        return self._pick(OF_KEYS)

    def _pick(self, types: dict[str, tuple[str, ...]]) -> str:
        return self._random.choice(list(types))

    def _value(self, type_: str) -> str:
        """Return the SQL of a value, or NULL."""
        if self._random.random() < 0.15:
            return f"cast(null as {type_})"
        return f"cast({self._present(type_)} as {type_})"

    def _present(self, type_: str) -> str:
        kind, _, inner = type_.partition("<")
        parts = _split(inner[:-1])
        if kind == "array":
            return f"array({', '.join(self._value(parts[0]) for _ in range(self._size()))})"
        if kind == "map":
            keys = {f"cast({self._present(parts[0])} as {parts[0]})" for _ in range(self._size())}
            # Spark takes 0.0 and -0.0, and texts of one collation, for the same key
            if "float" in parts[0] or "double" in parts[0] or "collate" in parts[0]:
                keys = set(sorted(keys)[:1])
            entries = [entry for key in sorted(keys) for entry in (key, self._value(parts[1]))]
            return f"map({', '.join(entries)})"
        if kind == "struct":
            fields = [part.split("`:", 1) for part in parts]
            named = (f"'{_literal(name[1:])}', {self._value(field)}" for name, field in fields)
            return f"named_struct({', '.join(named)})"
        values = {**SCALARS, **ONLY_PARQUET, **NESTED, **VARIANTS}[type_]
        return self._random.choice(values)

    def _size(self) -> int:
        return self._random.randint(0, 3)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(quoted: str) -> str:
    return quoted.replace("``", "`").replace("'", "\\'")


def _split(inner: str) -> list[str]:
    """Split the arguments of a nested type at the commas of its first level."""
    parts, depth, in_name = [""], 0, False
    for character in inner:
        if character == "`":
            in_name = not in_name
        if not in_name:
            depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
            if character == "," and not depth:
                parts.append("")
                continue
        parts[-1] += character
    return parts
