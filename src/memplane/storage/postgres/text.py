"""Values that PostgreSQL and Python do not hold alike: texts with a zero character, and vectors.

PostgreSQL keeps no zero character in a text; whatever came in is kept all the same, so it is written as two others, and
the first of those as two as well. Vectors are sixteen bits a number in both, in the other order of bytes.
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
    """Half-precision numbers as NumPy has them, on their way into a column."""


def to_column(text: str) -> str:
    """As it can be stored."""
    if "\x00" in text or _MARK in text:
        return text.replace(_MARK, _MARK_ITSELF).replace("\x00", _ZERO)
    return text


def from_column(text: str) -> str:
    """As it was."""
    return text.replace(_ZERO, "\x00").replace(_MARK_ITSELF, _MARK) if _MARK in text else text


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(to_column(obj))


class _TextBinaryDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(to_column(obj))


class _TextLoader(TextLoader):
    """Decodes by itself, not through the class it extends: a recall reads a thousand texts."""

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
    """Teach a connection both."""
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(str, _TextBinaryDumper)
    # One size for all: by how large a number is, each statement would be prepared anew.
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_loader("text", _TextLoader)
    adapters.register_loader("text", _TextBinaryLoader)
    dumper = type("VectorDumper", (_VectorDumper,), {"oid": vectors.oid})
    adapters.register_dumper(Vector, dumper)
    adapters.register_loader(vectors.oid, _VectorLoader)
