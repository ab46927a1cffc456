"""`memplane demo`: a tour for newcomers. It runs the commands it shows in a temporary directory."""

import io
import shlex
import shutil
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.text import Text

from memplane.errors import MemplaneError
from memplane.recall.search import LIMIT_MAX
from memplane.terminal.call import CommandContext, Wiring
from memplane.terminal.command import command
from memplane.terminal.exits import FOUND_WRONG
from memplane.terminal.output import line

# A narrated run of commands: what is about to happen, the command, and what it really answers.


_COLUMNS = 80


class Tour:
    """Prints each step; with --json, collects everything into one document at the end."""

    def __init__(self, call: CommandContext, wiring: Wiring, home: Path) -> None:
        self.home = home
        self._call = call
        self._wiring = wiring
        self._chapters: list[dict[str, Any]] = []

    def chapter(self, title: str, why: str) -> None:
        self._chapters.append({"title": title, "why": why, "steps": []})
        heading = f"── {len(self._chapters)}. {title} "
        self._call.out.print_part(Text(), line((heading.ljust(_COLUMNS, "─"), "bold")))
        self.say(why)

    def say(self, *lines: str) -> None:
        self._call.out.print_part(*(line(text) for text in lines))

    def note(self, text: str) -> None:
        self._call.out.print_part(Text(), line(text))

    def run(self, *arguments: str, ends_with: int = 0) -> None:
        """Show and run a command line; fail if its exit code differs from `ends_with`."""
        shown = f"memplane {shlex.join(arguments)}"
        self._call.out.print_part(Text(), line((f"$ {shown}", "bold cyan")))
        if self._call.out.json:
            code, answer = self._captured(arguments)
            self._chapters[-1]["steps"].append({"command": shown, "exit_code": code, "answer": answer})
        else:
            code = self._call.run(self._wiring, arguments)
        if code != ends_with:
            raise MemplaneError(f"the tour is broken: `{shown}` ended with {code}")

    def aside(self, shown: str, answer: str) -> None:
        """Show a command that is not part of Memplane, with its output."""
        self._call.out.print_part(Text(), line((f"$ {shown}", "bold cyan")), line(answer))
        self._chapters[-1]["steps"].append({"command": shown, "answer": answer})

    def ids(self, query: str = "", **conditions: Any) -> list[str]:
        """Return the ids that a search finds."""
        call = CommandContext(self._wiring, run=self._call.run)
        try:
            return [hit.id for hit in call.space().search(query, limit=LIMIT_MAX, **conditions)]
        finally:
            call.close()

    def end(self, *lines: str) -> None:
        self._call.out.print_part(Text())
        self.say(*lines)
        if self._call.out.json:
            self._call.out.answer({"tour": self._chapters})

    def _captured(self, arguments: tuple[str, ...]) -> tuple[int, Any]:
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as stream:
            code = self._call.run(self._wiring, ("--json", *arguments))
            stream.flush()
            return code, msgspec.json.decode(stream.buffer.getvalue())


app = typer.Typer()

_ADDRESS = "Rua das Flores 12"
# Assembled here, so that secret scanners do not report this file.
_SECRET = "AKIA" + "Q7ZP3M6W2XK9T4RB"


@command(app, examples=["memplane demo", "memplane demo --json"])
def demo(call: CommandContext) -> None:
    """Run a one-minute tour in a temporary directory. Your data is not touched."""
    with tempfile.TemporaryDirectory(prefix="memplane-demo-") as folder:
        wiring = msgspec.structs.replace(call.wiring, environment={"MEMPLANE_DATA": f"{folder}/memory"})
        tour = Tour(call, wiring, Path(folder) / "memory")
        tour.say(
            "Memplane is a memory for AI agents. This tour runs real commands, each shown after a $,",
            f"in the temporary directory {folder}.",
        )
        _remember(tour)
        _recall(tour)
        _change(tour)
        _keyed_facts(tour)
        _secrets_and_scripts(tour)
        _forget(tour)
        _prove(tour)
        _tamper(tour)
        _replay(tour)
        tour.end(
            "End of the tour. `memplane --help` lists all commands. Try one on your own memory:",
            "  memplane retain 'Hello'",
        )


def _remember(tour: Tour) -> None:
    tour.chapter("Remember", "Every turn becomes an entry in an append-only ledger. It is on disk at once.")
    tour.run("retain", "I moved to Lisbon last week, and the cat came along", "--conversation", "hello")
    tour.run(
        "retain", "Lovely! Shall I look for a vet nearby?", "--role", "assistant", "--conversation", "hello"
    )
    tour.note("Store what an agent should know next time as a typed memory.")
    tour.run("store", "preference", "Prefers TypeScript over JavaScript", "--tag", "coding")
    tour.run("store", "instruction", "Answer in short sentences")


def _recall(tour: Tour) -> None:
    tour.chapter(
        "Recall",
        "Before each turn, recall returns relevant memories. The fence marks them as data, not orders.",
    )
    tour.run("recall", "which city did she move to?")
    tour.note("At session start, the agent gets a brief.")
    tour.run("brief")


def _change(tour: Tour) -> None:
    tour.chapter("Replace", "A new memory replaces an old one. The old one stays in the history.")
    old = tour.ids("TypeScript", kinds=["preference"])[0]
    tour.run("store", "preference", "Prefers Rust over TypeScript", "--tag", "coding", "--supersedes", old)
    tour.run("search", "prefers")
    tour.note("You can still find the replaced one:")
    tour.run("search", "prefers", "--superseded")


def _keyed_facts(tour: Tour) -> None:
    tour.chapter(
        "Keyed facts",
        "One key, one value: a second put replaces the first. Facts expire after a time to live.",
    )
    tour.run("put", "preferences/theme", "dark")
    tour.run("put", "preferences/theme", "light")
    tour.run("get", "preferences/theme")
    tour.run("history", "preferences/theme")


def _secrets_and_scripts(tour: Tour) -> None:
    tour.chapter("Secrets", "Recall and search never return a secret that appears in a message.")
    tour.run("retain", f"The staging key is {_SECRET}, use it for the deployment")
    tour.run("search", "staging key")
    tour.chapter("Any language", "Search works without spaces between words.")
    tour.run("retain", "我的猫叫小米")
    tour.run("search", "小米")


def _forget(tour: Tour) -> None:
    tour.chapter(
        "Forget",
        "Forget deletes data from memory, from the indexes and from disk. A receipt lists what was deleted.",
    )
    tour.run("retain", f"My new address is {_ADDRESS}", "--conversation", "private")
    _search_files(tour, _ADDRESS, found=True)
    tour.run("forget", "--conversation", "private", "--reason", "she asked for it", "--yes")
    _search_files(tour, _ADDRESS, found=False)


def _search_files(tour: Tour, text: str, *, found: bool) -> None:
    """Search every byte of every file, like someone with access to the disk."""
    files = [path for path in tour.home.rglob("*") if path.is_file()]
    holding = [path.name for path in files if text.encode() in path.read_bytes()]
    assert bool(holding) is found, f"{text!r} in {holding}"
    answer = (
        f"found in {', '.join(sorted(holding))}" if holding else f"not found in any of {len(files)} files"
    )
    tour.aside(f"grep -r '{text}' {tour.home}", answer)


def _prove(tour: Tour) -> None:
    tour.chapter(
        "Verify",
        "Each entry carries a digest of all earlier ones, so any change is detected. Erased entries keep theirs.",
    )
    tour.run("ledger", "verify")


def _tamper(tour: Tour) -> None:
    tour.note("Tamper with a copy, and replace Lisbon by London:")
    copy = tour.home.with_name("copy")
    shutil.copytree(tour.home, copy)
    for path in copy.rglob("*.db"):
        path.write_bytes(path.read_bytes().replace(b"Lisbon", b"London"))
    tour.run("ledger", "verify", "--data", str(copy), ends_with=FOUND_WRONG)


def _replay(tour: Tour) -> None:
    tour.chapter("Replay", "Memories are derived from the ledger and can be rebuilt from it.")
    before = tour.ids()
    tour.run("replay")
    after = tour.ids()
    assert before == after
    tour.say(
        f"The same {len(after)} memories and turns with the same ids. The forgotten one stays forgotten:"
    )
    tour.run("search", _ADDRESS, "--words-only")
