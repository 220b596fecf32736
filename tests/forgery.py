"""A small trace whose tables say what a test wants, with checksums and totals made right again."""

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["COLUMNS", "INT32", "TEXT", "Column", "Row", "SmallTrace", "small_trace"]

Row = dict[str, Any]
GOLDEN = Path(__file__).parent / "golden" / "small-trace.json"
INT32, INT64, TEXT = 1, 2, 6
"""Physical types of Parquet."""


@dataclass(frozen=True)
class Column:
    """A column as trace format 2 has it."""

    name: str
    kind: int
    nullable: bool


def _columns(kind: int, names: str, *, nullable: bool = False) -> list[Column]:
    return [Column(name, kind, nullable) for name in names.split()]


COLUMNS = {
    "events": [
        *_columns(INT32, "thread"),
        *_columns(INT64, "start_ticks"),
        *_columns(INT64, "duration_ticks gap_ns", nullable=True),
        *_columns(TEXT, "op"),
        *_columns(INT32, "path to_path file to_file", nullable=True),
        *_columns(INT64, "flags mode size offset entries uid gid", nullable=True),
        *_columns(INT64, "atime_ns mtime_ns", nullable=True),
        *_columns(TEXT, "text", nullable=True),
        *_columns(INT64, "result"),
        *_columns(INT32, "between", nullable=True),
        *_columns(INT64, "after after_ns", nullable=True),
    ],
    "paths": _columns(TEXT, "path label"),
    "tree": [
        *_columns(INT32, "path"),
        *_columns(TEXT, "type"),
        *_columns(INT64, "size"),
        *_columns(INT32, "mode", nullable=True),
        *_columns(TEXT, "link", nullable=True),
        *_columns(TEXT, "known_from"),
    ],
    "edges": [*_columns(INT64, "event waits_for"), *_columns(TEXT, "reason")],
    "requests": [
        *_columns(INT32, "request"),
        *_columns(TEXT, "label"),
        *_columns(INT32, "thread"),
        *_columns(INT64, "first_event last_event events start_ns end_ns"),
    ],
}
"""The columns of each table; replayer/trace/FORMAT.md says what they mean."""


@dataclass
class SmallTrace:
    """A recording of two threads that do a little of everything, as rows that can be changed."""

    document: Any
    tables: dict[str, list[Row]]

    def count(self) -> None:
        """Make the totals of trace.json those of the tables."""
        rows, tree = self.tables["tree"], self.document["tree"]
        kinds = [row["type"][:1] for row in rows if row["type"]]
        named = {"files": "f", "directories": "d", "links": "l", "special": "o"}
        tree |= {name: kinds.count(letter) for name, letter in named.items()}
        tree["bytes"] = min(sum(row["size"] or 0 for row in rows), 2**63 - 1)
        self.document["counts"]["events"] = len(self.tables["events"])
        found: dict[str, set[int]] = {}
        for row in self.tables["requests"]:
            found.setdefault(row["label"] or "", set()).add(row["request"])
        self.document["requests"] = [
            {"label": label, "count": len(numbers), "events": 1} for label, numbers in found.items()
        ]

    def write(self, folder: Path) -> Path:
        """Write it as a trace folder with right checksums."""
        folder.mkdir()
        for name, rows in self.tables.items():
            content = _parquet(name, COLUMNS[name], rows)
            (folder / f"{name}.parquet").write_bytes(content)
            told = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            self.document["tables"][name] = told
        self.document["checksum"] = "0" * 64
        text = json.dumps(self.document, indent=2) + "\n"
        checksum = hashlib.sha256(text.encode()).hexdigest()
        (folder / "trace.json").write_text(text.replace("0" * 64, checksum, 1))
        return folder


def small_trace() -> SmallTrace:
    """Return the recording, to be changed and written."""
    found = deepcopy(json.loads(GOLDEN.read_text()))
    return SmallTrace(found["document"], found["tables"])


# What follows writes Parquet (github.com/apache/parquet-format): one row group, a plain page a
# column, nothing compressed, its headers in Thrift's compact protocol.

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_Field = tuple[int, int, bytes]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _int(number: int) -> bytes:
    return _varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _varint(len(encoded)) + encoded


def _list(kind: int, items: Sequence[bytes]) -> bytes:
    size = len(items)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + _varint(size)
    return head + b"".join(items)


def _struct(*fields: _Field) -> bytes:
    out, last = bytearray(), 0
    for number, kind, content in fields:
        out += bytes([(number - last) << 4 | kind]) + content
        last = number
    return bytes([*out, 0])


def _parquet(name: str, columns: Sequence[Column], rows: Sequence[Row]) -> bytes:
    out, chunks = bytearray(b"PAR1"), []
    # Without a value in a column that needs one, the file has it as one that needs none.
    columns = [
        Column(c.name, c.kind, c.nullable or any(row.get(c.name) is None for row in rows))
        for c in columns
    ]
    for column in columns:
        page = _page(column, [row.get(column.name) for row in rows])
        chunks.append(_chunk(column, len(rows), len(out), len(page)))
        out += page
    size = _int(len(out) - 4)
    group = _struct((1, _LIST, _list(_STRUCT, chunks)), (2, _I64, size), (3, _I64, _int(len(rows))))
    root = _struct((4, _BINARY, _text(name)), (5, _I32, _int(len(columns))))
    schema = [root, *map(_element, columns)]
    footer = _struct(
        (1, _I32, _int(1)),
        (2, _LIST, _list(_STRUCT, schema)),
        (3, _I64, _int(len(rows))),
        (4, _LIST, _list(_STRUCT, [group] if rows else [])),
    )
    return bytes(out) + footer + struct.pack("<I", len(footer)) + b"PAR1"


def _element(column: Column) -> bytes:
    repetition = _int(int(column.nullable))
    return _struct(
        (1, _I32, _int(column.kind)), (3, _I32, repetition), (4, _BINARY, _text(column.name))
    )


def _chunk(column: Column, rows: int, offset: int, size: int) -> bytes:
    plain, rle = _int(0), _int(3)
    facts = _struct(
        (1, _I32, _int(column.kind)),
        (2, _LIST, _list(_I32, [plain, rle])),
        (3, _LIST, _list(_BINARY, [_text(column.name)])),
        (4, _I32, _int(0)),
        (5, _I64, _int(rows)),
        (6, _I64, _int(size)),
        (7, _I64, _int(size)),
        (9, _I64, _int(offset)),
    )
    return _struct((2, _I64, _int(offset)), (3, _STRUCT, facts))


def _page(column: Column, values: Sequence[Any]) -> bytes:
    defined = [value is not None for value in values]
    content = _levels(defined) if column.nullable else b""
    content += b"".join(_plain(column.kind, value) for value in values if value is not None)
    plain, rle = _int(0), _int(3)
    header = _struct((1, _I32, _int(len(values))), (2, _I32, plain), (3, _I32, rle), (4, _I32, rle))
    size = _int(len(content))
    page = _struct((1, _I32, _int(0)), (2, _I32, size), (3, _I32, size), (5, _STRUCT, header))
    return page + content


def _levels(defined: Iterable[bool]) -> bytes:
    """Bits of one byte after the other, the first value lowest."""
    bits = [*defined]
    groups = -(-len(bits) // 8)
    number = sum(1 << at for at, bit in enumerate(bits) if bit)
    run = _varint(groups << 1 | 1) + number.to_bytes(groups, "little")
    return struct.pack("<I", len(run)) + run


def _plain(kind: int, value: Any) -> bytes:  # noqa: ANN401 - a number or a text
    if kind == TEXT:
        encoded = str(value).encode()
        return struct.pack("<I", len(encoded)) + encoded
    return struct.pack("<i" if kind == INT32 else "<q", value)
