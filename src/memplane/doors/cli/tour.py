"""A narrated run of commands: what is about to happen, the command, and what it really answers."""

import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from memplane.doors.cli.call import Call, Wiring
from memplane.doors.cli.output import line
from memplane.errors import MemplaneError
from memplane.recall.search import LIMIT_MAX

_COLUMNS = 80


class Tour:
    """Tells people as it goes; with --json it keeps everything for one document at the end."""

    def __init__(self, call: Call, wiring: Wiring, home: Path) -> None:
        self.home = home
        self._call = call
        self._wiring = wiring
        self._chapters: list[dict[str, Any]] = []

    def chapter(self, title: str, why: str) -> None:
        self._chapters.append({"title": title, "why": why, "steps": []})
        heading = f"── {len(self._chapters)}. {title} "
        self._call.out.tell(Text(), line((heading.ljust(_COLUMNS, "─"), "bold")))
        self.say(why)

    def say(self, *lines: str) -> None:
        self._call.out.tell(*(line(text) for text in lines))

    def note(self, text: str) -> None:
        self._call.out.tell(Text(), line(text))

    def run(self, *arguments: str, ends_with: int = 0) -> None:
        """Show a command line and run it; a tour that does not end as told is broken, and says so."""
        shown = f"memplane {shlex.join(arguments)}"
        self._call.out.tell(Text(), line((f"$ {shown}", "bold cyan")))
        if self._call.out.json:
            code, answer = self._captured(arguments)
            self._chapters[-1]["steps"].append({"command": shown, "exit_code": code, "answer": answer})
        else:
            code = self._call.run(self._wiring, arguments)
        if code != ends_with:
            raise MemplaneError(f"the tour is broken: `{shown}` ended with {code}")

    def aside(self, shown: str, answer: str) -> None:
        """Something that is not a command of ours."""
        self._call.out.tell(Text(), line((f"$ {shown}", "bold cyan")), line(answer))
        self._chapters[-1]["steps"].append({"command": shown, "answer": answer})

    def ids(self, query: str = "", **conditions: Any) -> list[str]:
        """What a search finds, to name an id as a person would copy it."""
        call = Call(self._wiring, run=self._call.run)
        try:
            return [hit.id for hit in call.space().search(query, limit=LIMIT_MAX, **conditions)]
        finally:
            call.close()

    def end(self, *lines: str) -> None:
        self._call.out.tell(Text())
        self.say(*lines)
        if self._call.out.json:
            self._call.out.answer({"tour": self._chapters})

    def _captured(self, arguments: tuple[str, ...]) -> tuple[int, Any]:
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as stream:
            code = self._call.run(self._wiring, ("--json", *arguments))
            stream.flush()
            return code, msgspec.json.decode(stream.buffer.getvalue())
