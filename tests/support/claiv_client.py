"""CLAIV's own Python client against a server of ours, synchronous or not, and whether an answer fits its types."""

import asyncio
import types
import typing

from claiv import AsyncClaivClient, ClaivClient

UNSAID = {"debug"}
"""Members that only come when they are asked for."""


class Driver:
    """`driver.recall({...})` calls the method of that name, whichever client it is, and waits for the answer."""

    def __init__(self, url, credential, *, kind, **options):
        self._runner = asyncio.Runner() if kind == "async" else None
        make = AsyncClaivClient if kind == "async" else ClaivClient
        self.client = make(api_key=credential, base_url=url, **options)

    def __getattr__(self, name):
        method = getattr(self.client, name)
        if self._runner is None:
            return method
        return lambda *given, **named: self._runner.run(method(*given, **named))

    def close(self):
        if self._runner is None:
            self.client.close()
        else:
            self._runner.run(self.client.close())
            self._runner.close()


def methods_of(client):
    """Every call the client offers."""
    return {
        name
        for name in dir(client)
        if not name.startswith("_") and name != "close" and callable(getattr(client, name))
    }


def misfits(value, shape, where="$"):
    """Where an answer is not what the client's types say, member by member. What they do not know is passed over."""
    origin, parts = typing.get_origin(shape), typing.get_args(shape)
    if shape is typing.Any or (origin is typing.Literal and value in parts):
        return []
    if typing.is_typeddict(shape) and isinstance(value, dict):
        return _misfitting_members(value, typing.get_type_hints(shape), where)
    if origin is list and isinstance(value, list):
        return [wrong for n, item in enumerate(value) for wrong in misfits(item, parts[0], f"{where}[{n}]")]
    if origin in (types.UnionType, typing.Union):
        tried = [misfits(value, part, where) for part in parts]
        return [] if any(not wrong for wrong in tried) else tried[0]
    plain = dict if typing.is_typeddict(shape) else origin or shape
    if plain is not typing.Literal and _is(value, plain):
        return []
    return [f"{where} is {value!r}, and not {shape}"]


def _misfitting_members(value, hints, where):
    absent = [f"{where}.{name} is missing" for name in hints if name not in value and name not in UNSAID]
    there = {name: hint for name, hint in hints.items() if name in value}
    return absent + [
        wrong for name, hint in there.items() for wrong in misfits(value[name], hint, f"{where}.{name}")
    ]


def _is(value, plain):
    """A whole number will do for one with a fraction; a truth value for neither."""
    return isinstance(value, (int, float) if plain is float else plain) and (
        plain is bool or not isinstance(value, bool)
    )
