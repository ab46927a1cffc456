"""The part of `house.py` that runs inside the measured checkout: `house_inside.py count` and `house_inside.py trace …`.

It imports nothing but the packages that every version of Memplane has, so that old commits can be measured too.
"""

import importlib
import json
import runpy
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FrameType
from typing import Any

import typer.core

WORKER = "memplane-worker"
"""The thread that enriches after the answer: no part of a call."""


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def seam() -> dict[str, int]:
    """The methods that a database engine implements, by protocol."""
    try:
        module = importlib.import_module("memplane.storage.engine")
    except ImportError:  # before the engine seam, every query was part of the contract
        module = importlib.import_module("memplane.storage.base")
        return {name: len(public(getattr(module, name))) for name in ("Reader", "Writer")}
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    return {cls.__name__: len(public(cls)) for cls in own if getattr(cls, "_is_protocol", False)}


def parts_of_space() -> dict[str, int]:
    """The public names of the objects that a space has as attributes."""
    memplane = importlib.import_module("memplane").Memplane
    with tempfile.TemporaryDirectory() as data, memplane.open(data, embedder=None) as plane:
        space = plane.space("alice")
        made_on_use = [
            name for name, value in vars(type(space)).items() if isinstance(value, cached_property)
        ]
        held = {name: type(getattr(space, name)) for name in (*vars(space), *made_on_use)}
    return {
        name: len(public(cls))
        for name, cls in held.items()
        if not name.startswith("_") and cls.__module__.startswith("memplane.space.")
    }


def help_texts(command: Any) -> Iterator[str]:
    yield from (text for text in (command.help, command.epilog) if isinstance(text, str))
    yield from (parameter.help for parameter in command.params if getattr(parameter, "help", None))
    for inner in getattr(command, "commands", {}).values():
        yield from help_texts(inner)


def count(command: Any, *_: object, **__: object) -> None:
    """Instead of the command line: print what only an import shows."""
    space = importlib.import_module("memplane").Space
    found = {
        "seam": seam(),
        "space": len(set(public(space)) - set(parts := parts_of_space())),
        "parts": parts,
        "help": list(help_texts(command)),
    }
    print(json.dumps(found))
    sys.exit(0)


class Trace:
    """The functions that ran, by thread, between two lines on stdin."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._passed: set[tuple[CodeType, int]] = set()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._passed.add((frame.f_code, threading.get_ident()))

    def answer(self) -> None:
        for _ in sys.stdin:
            passed, self._passed = self._passed, set()
            workers = {thread.ident for thread in threading.enumerate() if thread.name == WORKER}
            codes = {code for code, thread in passed if thread not in workers and code.co_name != "<module>"}
            files = {code.co_filename for code in codes}
            print(json.dumps(sorted(name for name in files if name.startswith(self._source))), flush=True)


def main(mode: str, arguments: list[str]) -> None:
    if mode == "count":
        typer.core.TyperGroup.main = count  # type: ignore[assignment,method-assign] # it never returns
        arguments = ["--help"]
    else:
        trace = Trace(arguments.pop(0))
        threading.Thread(target=trace.answer, daemon=True).start()
        threading.setprofile(trace.note)
        sys.setprofile(trace.note)
    sys.argv = ["memplane", *arguments]
    runpy.run_module("memplane", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
