"""Values that PostgreSQL and Python represent differently: texts with a zero character, and vectors.

PostgreSQL stores no zero character in a text, so it is stored as two other characters, and the first of those
as two as well. Vectors have sixteen bits per number in both, with the opposite byte order.
"""

import struct
from codecs import utf_8_decode
from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from psycopg.types.string import StrBinaryDumper, StrDumper, TextBinaryLoader, TextLoader

_MARK = "\uf8ff"
_MARK_ITSELF = _MARK + "1"
_ZERO = _MARK + "0"
_HEADER = struct.Struct(">HH")


class Vector(bytes):
    """Half-precision numbers as NumPy stores them, as a parameter."""


def to_column(text: str) -> str:
    """A text as it is stored."""
    if "\x00" in text or _MARK in text:
        return text.replace(_MARK, _MARK_ITSELF).replace("\x00", _ZERO)
    return text


def from_column(text: str) -> str:
    """A stored text as it was."""
    return text.replace(_ZERO, "\x00").replace(_MARK_ITSELF, _MARK) if _MARK in text else text


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(to_column(obj))


class _TextBinaryDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(to_column(obj))


class _TextLoader(TextLoader):
    """Decodes directly, without a call of the base class: a recall reads a thousand texts."""

    def load(self, data: Buffer) -> Any:
        text, _ = utf_8_decode(data, "strict", True)  # noqa: FBT003 - it takes no names
        return from_column(text)


class _TextBinaryLoader(TextBinaryLoader):
    load = _TextLoader.load


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Vector) -> Buffer | None:
        numbers = np.frombuffer(obj, "<f2")
        return _HEADER.pack(len(numbers), 0) + numbers.astype(">f2").tobytes()


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return np.frombuffer(bytes(data)[_HEADER.size :], ">f2").astype("<f2").tobytes()


def adapt(connection: Connection[Any], vectors: TypeInfo) -> None:
    """Register both on a connection."""
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(str, _TextBinaryDumper)
    # One size for all integers: otherwise each statement would be prepared again for each size.
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_loader("text", _TextLoader)
    adapters.register_loader("text", _TextBinaryLoader)
    dumper = type("VectorDumper", (_VectorDumper,), {"oid": vectors.oid})
    adapters.register_dumper(Vector, dumper)
    adapters.register_loader(vectors.oid, _VectorLoader)
