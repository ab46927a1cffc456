"""Print the shape of the code as a table: `python scripts/house.py [REV…]`.

Without a revision the working tree is measured; several revisions become columns, so that a change can be judged side by
side. `.` names the working tree among them. `--static` leaves out what needs the program to run (the seam, `Space`, the
command line's help and the files passed by a call); `--files` also lists the files passed.
"""

import argparse
import ast
import json
import re
import statistics
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, run
from typing import Any
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[1]
INSIDE = Path(__file__).with_name("house_inside.py")
TREE = "."
MARKS = re.compile(
    r"\b(?:tells?|told|telling|who(?:m)?ever|somebody|anybody|nobody|everybody|anew|meanwhile|alike|beside|in short|at odds|just now|"
    r"all the same|of ours|in vain|once more|gets? on|got on|goes by|go by|stands?|stood|came to|comes? to|knocks?|lent|is over|passed over|"
    r"taken? in|takes in|given out|look(?:s|ed)? after|lets? go|no [a-z]+ of its own|holds?(?= (?:now|then|no)\b)|is so\b|said so)\b",
    re.IGNORECASE,
)
"""Words of the dialect that the first version was written in; STYLE's "Voice" says what to write instead."""

PROSE = frozenset({".md", ".py", ".html", ".toml"})
SENTENCE_BLANKS = 3
"""A string with as many blanks is taken for prose."""

SETTLE_S = 0.5
"""After a call the proxy retains the turn and the worker enriches it; the next one begins when both are done."""

Row = tuple[str, str]


# ── what the files say ───────────────────────────────────────────────────────────────────────────────────────────


class Source:
    """The Python files under `src/memplane` of one checkout, each parsed once."""

    def __init__(self, root: Path) -> None:
        self.root = root / "src" / "memplane"
        self.files = sorted(self.root.rglob("*.py"))
        self.texts = {path: path.read_text("utf-8") for path in self.files}
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}

    def unit(self, path: Path) -> str:
        return path.relative_to(self.root).parts[0].removesuffix(".py")

    def units(self) -> list[str]:
        """With folders that hold data alone, without the two names that every package has."""
        held = (path for path in self.root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return sorted({self.unit(path) for path in held} - {"__init__", "py.typed"})

    def imports(self, path: Path) -> Iterator[str]:
        """The units that a file imports, at its top or inside a function."""
        for node in ast.walk(self.trees[path]):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            yield from (name.split(".")[1] for name in names if name.startswith("memplane."))

    def cycles(self) -> list[list[str]]:
        """Groups of units that reach one another through imports."""
        graph: dict[str, set[str]] = {unit: set() for unit in self.units()}
        for path in self.files:
            if (unit := self.unit(path)) in graph:
                graph[unit] |= {name for name in self.imports(path) if name in graph and name != unit}
        reached = {unit: _reachable(graph, unit) for unit in graph}
        groups = {frozenset(other for other in reached[unit] if unit in reached[other]) for unit in graph}
        return sorted(sorted(group) for group in groups if group)

    def class_names(self) -> Counter[str]:
        """How often each public name is used for a class at the top of a module."""
        return Counter(
            node.name
            for tree in self.trees.values()
            for node in tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )

    def longest_function(self) -> tuple[int, str]:
        return max(
            ((node.end_lineno or 0) - node.lineno + 1, node.name)
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        new = graph[todo.pop()] - seen
        seen |= new
        todo.extend(new)
    return seen


def static_rows(root: Path) -> Iterator[Row]:
    source = Source(root)
    lines = sorted(len(text.splitlines()) for text in source.texts.values())
    repeated = {name: count for name, count in source.class_names().items() if count > 1}
    length, name = source.longest_function()
    yield "files", str(len(source.files))
    yield "top-level units", str(len(source.units()))
    yield "lines", f"{sum(lines):,}"
    middle, high = statistics.median(lines), lines[len(lines) * 95 // 100]
    yield "lines of a file: median, 95th percentile", f"{middle:.0f}, {high}"
    yield "longest function", f"{length} ({name})"
    yield "package cycles", "; ".join(" ↔ ".join(group) for group in source.cycles()) or "0"
    yield "class names used more than once", f"{len(repeated)} names, {sum(repeated.values())} classes"
    yield "marks per 1,000 words: source", marks_rate(_texts(root / "src"))
    yield "marks per 1,000 words: README and docs", marks_rate(_texts(root / "README.md", root / "docs"))


# ── the voice ────────────────────────────────────────────────────────────────────────────────────────────────────


def _texts(*places: Path) -> Iterator[str]:
    """What a person reads in these files: Markdown without code, Python's docstrings and messages."""
    for place in places:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix not in PROSE or not path.is_file():
                continue
            text = path.read_text("utf-8", "replace")
            if path.suffix == ".py":
                yield from _strings(text)
            else:
                yield re.sub(r"`[^`\n]*`|\{[{%].*?[%}]\}|<[^>]*>", "X", re.sub(r"(?s)```.*?```", "", text))


def _strings(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and text.count(" ") >= SENTENCE_BLANKS:
            yield text


def marks_rate(texts: Iterator[str]) -> str:
    words = marks = 0
    for line in (line for text in texts for line in text.splitlines()):
        words += len(line.split())
        marks += len(MARKS.findall(line))
    return f"{1000 * marks / max(words, 1):.1f}"


# ── what the program says ────────────────────────────────────────────────────────────────────────────────────────


def _environment(root: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{root}/src:{root}/benchmarks", "PATH": "", "HOME": str(root), "LANG": "C.UTF-8"}


def counted_rows(root: Path) -> Iterator[Row]:
    command = [sys.executable, str(INSIDE), "count"]
    ran = run(command, env=_environment(root), stdout=PIPE, check=True, text=True)
    found = json.loads(ran.stdout)
    yield "storage seam methods", _sum(found["seam"])
    yield "public methods of Space", str(found["space"])
    yield "methods of its sub-objects", _sum(found["parts"])
    yield "marks per 1,000 words: command line help", marks_rate(iter(found["help"]))


def _sum(numbers: Mapping[str, int]) -> str:
    parts = ", ".join(f"{name} {number}" for name, number in numbers.items())
    return f"{sum(numbers.values())} ({parts})" if parts else "0"


# ── the files that a call passes ─────────────────────────────────────────────────────────────────────────────────


class _Provider(BaseHTTPRequestHandler):
    """Answers every chat turn with the same words, in OpenAI's shape."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": "Noted."}, "finish_reason": "stop"}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        payload = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Keep the terminal for the table."""


@contextmanager
def provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _bodies(number: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """The four calls; each number names a turn of its own."""
    said = {"role": "user", "content": f"I live in Lisbon and my dog is called Luna {number}."}
    reply = {"choices": [{"message": {"content": f"Luna is a fine name, number {number}."}}]}
    turn = {
        "id": f"hist1_{number}",
        "ts": "2026-04-03T12:00:00Z",
        "requested_model": "openai/gpt-4o",
        "request_effective": {"messages": [said]},
        "response": {"format": "json", "json": reply},
    }
    asked = [{"role": "user", "content": "Where do I live, and what is my dog called?"}]
    agent = {"agent_id": "analyst"}
    return {
        "/retain": ("/retain", {**agent, "entry": turn}),
        "/recall": ("/recall", {**agent, "messages": asked}),
        "/forget": ("/forget", {**agent, "entry_ids": [f"hist1_{number}"], "reason": "asked for"}),
        "a proxied turn": ("/v1/chat/completions", {"model": "gpt-4o", "messages": [said, *asked]}),
    }


@contextmanager
def traced_server(root: Path) -> Iterator["Popen[str]"]:
    """`memplane serve` of a checkout, with time enough for every step: what a call passes must not depend on the load."""
    with tempfile.TemporaryDirectory() as data, provider() as url:
        patience = ("MEMPLANE_RECALL_ANSWER_MS", "MEMPLANE_PROXY_RECALL_MS", "MEMPLANE_PROXY_RETAIN_MS")
        environment = {
            **_environment(root),
            **dict.fromkeys(patience, "60000"),
            "MEMPLANE_EMBEDDING": "none",
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "none",
        }
        command = [sys.executable, str(INSIDE), "trace", str(root / "src" / "memplane"), "serve", "--no-auth"]
        with Popen(
            [*command, "--json", "--port", "0", "--data", data],
            env=environment,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            text=True,
        ) as server:
            try:
                yield server
            finally:
                server.terminate()


def passed_files(root: Path) -> dict[str, list[str]]:
    """By call: our files whose functions run for it once everything is warm. Enrichment, which the worker does later in a
    thread of its own, is left out."""
    with traced_server(root) as server:

        def answer() -> Any:
            line = server.stdout.readline() if server.stdout else ""
            return json.loads(line or "null")

        def passed() -> list[str]:
            time.sleep(SETTLE_S)
            print(file=server.stdin, flush=True)
            return [str(Path(file).relative_to(root / "src" / "memplane")) for file in answer()]

        if (greeting := answer()) is None:
            sys.exit("the server did not start; `memplane serve` in that checkout shows why")
        found: dict[str, list[str]] = {}
        for number in range(3):  # the last round counts: by then nothing runs for the first time
            for name, (path, body) in _bodies(number).items():
                passed()
                _post(greeting["url"] + path, body)
                found[name] = passed()
        return found


def _post(url: str, body: Mapping[str, Any]) -> None:
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as answer:
        answer.read()


def traced_rows(root: Path, *, listed: bool) -> Iterator[Row]:
    passed = passed_files(root)
    for name, files in passed.items():
        yield f"files passed by {name}", str(len(files))
        if listed:
            print(f"{name}:", *files, sep="\n  ", file=sys.stderr)


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """The files of a revision, in a temporary folder unless it is the working tree."""
    if revision == TREE:
        yield ROOT
        return
    packed = run(["git", "archive", revision], cwd=ROOT, stdout=PIPE, check=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def rows_of(root: Path, *, static: bool, listed: bool = False) -> dict[str, str]:
    rows = dict(static_rows(root))
    return rows if static else rows | dict(counted_rows(root)) | dict(traced_rows(root, listed=listed))


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    names = dict.fromkeys(name for rows in columns.values() for name in rows)
    lines = [["", *columns], *([name, *(rows.get(name, "") for rows in columns.values())] for name in names)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="*", default=[TREE], help="a commit, or . for the working tree")
    parser.add_argument("--static", action="store_true", help="leave out what needs the program to run")
    parser.add_argument("--files", action="store_true", help="also list the files passed by each call")
    given = parser.parse_args()
    columns = {}
    for revision in given.revision:
        with checkout(revision) as root:
            name = "working tree" if revision == TREE else revision
            columns[name] = rows_of(root, static=given.static, listed=given.files)
    print(table(columns))


if __name__ == "__main__":
    main()
