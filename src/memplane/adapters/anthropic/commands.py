"""The six commands of the memory tool on a space.

The messages are those of Anthropic's documentation, because the model was trained on them. Cases that the
documentation leaves open follow the SDK's own file-based tool.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from memplane.errors import InvalidRequest, MemplaneError, NotFound, PathTaken
from memplane.memory.paths import ROOT, checked_path
from memplane.safety.sanitize import Splice
from memplane.space import Space
from memplane.space.files import FileEntry

# Lines of a file. Only a line feed ends a line; other line separators are content.


_NUMBER_WIDTH = 6


def numbered(lines: Iterable[str], first: int) -> str:
    """Each line with its number, right-aligned in six columns, and a tab."""
    return "\n".join(f"{number:{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def line_count(text: str) -> int:
    """A trailing newline does not start another line."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def occurrences(text: str, part: str) -> list[int]:
    """The line numbers at which the text occurs, including overlapping occurrences."""
    found: list[int] = []
    line, at, before = 1, text.find(part), 0
    while at != -1:
        line += text.count("\n", before, at)
        found.append(line)
        before, at = at, text.find(part, at + 1)
    return found


def inserted(text: str, after: int, new: str) -> list[Splice]:
    """Insert `new` as whole lines after line `after`. The file then ends with a newline; an empty last line is dropped, as
    Anthropic's own tool does."""
    lines = new.rstrip("\n") + "\n"
    unended = bool(text) and not text.endswith("\n")
    at = 0
    for _ in range(after):
        ends = text.find("\n", at)
        at = len(text) if ends == -1 else ends + 1
    if at == len(text):
        added = "" if text and lines == "\n" else lines
        return [Splice(at, at, f"\n{added}" if unended else added)]
    if unended:
        return [Splice(at, at, lines), Splice(len(text), len(text), "\n")]
    last = len(text) - 1
    if not f"\n{text}".endswith("\n\n"):
        return [Splice(at, at, lines)]
    return (
        [Splice(at, len(text), lines)] if at == last else [Splice(at, at, lines), Splice(last, len(text), "")]
    )


# Directory listings: two levels, with sizes, without hidden items.


_LEVELS = 2
_UNITS = ("B", "K", "M", "G")
_STEP = 1_024


def listing(folder: str, entries: Sequence[FileEntry]) -> str:
    """The size of a directory is the total of all its files, including hidden ones, because it shows the memory used."""
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    for entry in entries:
        parts = tuple(entry.path.removeprefix(f"{folder}/").split("/"))
        if any(part.startswith(".") or part == "node_modules" for part in parts[:_LEVELS]):
            continue
        for depth in range(1, min(len(parts), _LEVELS) + 1):
            place = parts[:depth]
            sizes[place] = sizes.get(place, 0) + entry.bytes
            if depth < len(parts):
                folders.add(place)
    total = sum(entry.bytes for entry in entries)
    rows = [f"{size_text(total)}\t{folder}"]
    for place in sorted(sizes):
        slash = "/" if place in folders else ""
        rows.append(f"{size_text(sizes[place])}\t{'/'.join((folder, *place))}{slash}")
    header = f"Here're the files and directories up to 2 levels deep in {folder}, excluding hidden items and node_modules:"
    return "\n".join([header, *rows])


def size_text(count: int) -> str:
    """`512B`, `1.5K`, `2.0M`."""
    if count < _STEP:
        return f"{count}B"
    size, unit = float(count), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f}{_UNITS[unit]}"


LINES_MAX = 999_999

_SNIPPET_LINES = 2
_LINES_NAMED_MAX = 1_000
_RANGE = 2


class ToolCommandError(Exception):
    """The error text for the model: a `tool_result` with `is_error`."""


class ViewCommand(msgspec.Struct, tag_field="command", tag="view", frozen=True):
    """Show a file, or the files of a directory."""

    path: str
    view_range: list[int] | None = None


class CreateCommand(msgspec.Struct, tag_field="command", tag="create", frozen=True):
    """Create a file."""

    path: str
    file_text: str


class StrReplaceCommand(msgspec.Struct, tag_field="command", tag="str_replace", frozen=True):
    """Replace a text that occurs exactly once."""

    path: str
    old_str: str
    new_str: str = ""


class InsertCommand(msgspec.Struct, tag_field="command", tag="insert", frozen=True):
    """Insert text after a line; 0 inserts before the first."""

    path: str
    insert_line: int
    insert_text: str


class DeleteCommand(msgspec.Struct, tag_field="command", tag="delete", frozen=True):
    """Forget a file, or a directory with its contents."""

    path: str


class RenameCommand(msgspec.Struct, tag_field="command", tag="rename", frozen=True):
    """Move a file or a directory."""

    old_path: str
    new_path: str


Command = ViewCommand | CreateCommand | StrReplaceCommand | InsertCommand | DeleteCommand | RenameCommand


def read_command(given: object) -> Command:
    """Parse a command from the input of a `tool_use` block."""
    try:
        command: Command = msgspec.convert(given, Command)
    except (msgspec.ValidationError, TypeError, RecursionError) as exc:
        raise ToolCommandError(f"Error: not a valid command of the memory tool: {exc}") from exc
    return command


def run(space: Space, command: Command) -> str:
    """Run a command and return its message, or raise `ToolCommandError`."""
    try:
        match command:
            case ViewCommand():
                return _view(space, command)
            case CreateCommand():
                return _create(space, command)
            case StrReplaceCommand():
                return _str_replace(space, command)
            case InsertCommand():
                return _insert(space, command)
            case DeleteCommand():
                return _delete(space, command)
            case RenameCommand():
                return _rename(space, command)
    except InvalidRequest as exc:
        raise ToolCommandError(f"Error: {exc}") from exc
    except MemplaneError as exc:
        again = "; try again" if exc.retryable else ""
        raise ToolCommandError(f"Error: memory is unavailable ({exc.code}){again}") from exc


def _view(space: Space, command: ViewCommand) -> str:
    path = checked_path(command.path)
    try:
        text = space.files.read(path).text
    except NotFound as exc:
        entries = space.files.list(path)
        if not entries and path != ROOT:
            raise ToolCommandError(
                f"The path {command.path} does not exist. Please provide a valid path."
            ) from exc
        return listing(path, entries)
    lines = text.split("\n")
    if len(lines) > LINES_MAX:
        raise ToolCommandError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
    first, last = _range(command.view_range, len(lines))
    shown = numbered(lines[first - 1 : last], first)
    return f"Here's the content of {command.path} with line numbers:\n{shown}"


def _range(given: Sequence[int] | None, count: int) -> tuple[int, int]:
    """The first and last line to show."""
    if given is None:
        return 1, count
    if len(given) != _RANGE:
        raise ToolCommandError(
            f"Error: Invalid `view_range` parameter: {given}. It should be a list of two integers."
        )
    first, last = given
    last = count if last == -1 else last
    if not 1 <= first <= count or last < first:
        raise ToolCommandError(
            f"Error: Invalid `view_range` parameter: {given}. "
            f"It should be within the range of lines of the file: [1, {count}]"
        )
    return first, min(last, count)


def _create(space: Space, command: CreateCommand) -> str:
    try:
        space.files.create(command.path, command.file_text)
    except PathTaken as exc:
        raise ToolCommandError(f"Error: File {command.path} already exists") from exc
    return f"File created successfully at: {command.path}"


def _str_replace(space: Space, command: StrReplaceCommand) -> str:
    changed = 0

    def edit(text: str) -> Iterable[Splice]:
        nonlocal changed
        old = command.old_str
        count = text.count(old) if old else 0
        if count == 0:
            raise ToolCommandError(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
            )
        if count > 1:
            found = occurrences(text, old)
            named = ", ".join(map(str, found[:_LINES_NAMED_MAX]))
            more = ", …" if len(found) > _LINES_NAMED_MAX else ""
            raise ToolCommandError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` "
                f"in lines: {named}{more}. Please ensure it is unique"
            )
        at = text.index(old)
        changed = text.count("\n", 0, at)
        return [Splice(at, at + len(old), command.new_str)]

    missing = f"Error: The path {command.path} does not exist. Please provide a valid path."
    lines = _edited(space, command.path, edit, missing).split("\n")
    first = max(0, changed - _SNIPPET_LINES)
    snippet = numbered(lines[first : changed + _SNIPPET_LINES + 1], first + 1)
    return (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        + snippet
    )


def _insert(space: Space, command: InsertCommand) -> str:
    def edit(text: str) -> Iterable[Splice]:
        count = line_count(text)
        if not 0 <= command.insert_line <= count:
            raise ToolCommandError(
                f"Error: Invalid `insert_line` parameter: {command.insert_line}. "
                f"It should be within the range of lines of the file: [0, {count}]"
            )
        return inserted(text, command.insert_line, command.insert_text)

    _edited(space, command.path, edit, f"Error: The path {command.path} does not exist")
    return f"The file {command.path} has been edited."


def _edited(space: Space, path: str, edit: Callable[[str], Iterable[Splice]], missing: str) -> str:
    try:
        return space.files.edit(path, edit).text
    except NotFound as exc:
        raise ToolCommandError(missing) from exc


def _delete(space: Space, command: DeleteCommand) -> str:
    try:
        space.files.delete(command.path)
    except NotFound as exc:
        raise ToolCommandError(f"Error: The path {command.path} does not exist") from exc
    return f"Successfully deleted {command.path}"


def _rename(space: Space, command: RenameCommand) -> str:
    try:
        space.files.rename(command.old_path, command.new_path)
    except NotFound as exc:
        raise ToolCommandError(f"Error: The path {command.old_path} does not exist") from exc
    except PathTaken as exc:
        raise ToolCommandError(f"Error: The destination {command.new_path} already exists") from exc
    return f"Successfully renamed {command.old_path} to {command.new_path}"
