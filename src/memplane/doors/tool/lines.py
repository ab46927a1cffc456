"""Lines of a file. Only a line feed ends one: other ends of lines are part of what was written."""

from collections.abc import Iterable

from memplane.governance.veil import Splice

_NUMBER_WIDTH = 6


def numbered(lines: Iterable[str], first: int) -> str:
    """Each with its number, in six places and a tab."""
    return "\n".join(f"{number:{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def line_count(text: str) -> int:
    """A last line end begins no further line."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def occurrences(text: str, part: str) -> list[int]:
    """The number of the line of each place where the part begins, overlapping or not."""
    found: list[int] = []
    line, at, before = 1, text.find(part), 0
    while at != -1:
        line += text.count("\n", before, at)
        found.append(line)
        before, at = at, text.find(part, at + 1)
    return found


def inserted(text: str, after: int, new: str) -> list[Splice]:
    """`new` as whole lines after line `after`. The file ends with a line end then, as files do."""
    lines = new.rstrip("\n") + "\n"
    unended = bool(text) and not text.endswith("\n")
    at = 0
    for _ in range(after):
        ends = text.find("\n", at)
        at = len(text) if ends == -1 else ends + 1
    if at == len(text):
        return [Splice(at, at, f"\n{lines}" if unended else lines)]
    rest = [Splice(len(text), len(text), "\n")] if unended else []
    return [Splice(at, at, lines), *rest]
