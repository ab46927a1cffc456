"""Front matter: what a file says about itself in YAML, between two lines of `---` at its beginning.

People write these by hand, and so do programs that never read a YAML manual. What is written here reads back exactly, in
any YAML reader; what others wrote is taken as far as it can be understood, and never for more than text.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

YAML_CHARS_MAX = 16 * 1024
"""Longer front matter is read line by line: people do not write that much, and YAML parsers are slow."""

_BOM = "\ufeff"
_DEPTH_MAX = 16
_FENCE = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_MEMBER = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*?))?[ \t]*\r?\n?", re.ASCII)
_WORDS_WITH_A_MEANING = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"})
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NOT_AS_IT_IS = re.compile(
    '[\\\\"\\x00-\\x1f\\x7f-\\xa0\\xad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ud800-\\udfff\\ufeff\\ufff0-\\uffff]'
)
_WORD = r"[A-Za-z](?:[A-Za-z0-9 _./+-]*[A-Za-z0-9_./+-])?"
_SIMPLE = re.compile(
    rf"([A-Za-z_]\w*): (?:({_WORD})|\"([^{_NOT_AS_IT_IS.pattern[1:-1]}]*)\"|\[({_WORD}(?:, {_WORD})*)\])\r?",
    re.ASCII,
)
_PLAIN = re.compile(_WORD, re.ASCII)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")

Value = str | list[str] | tuple[str, ...]


class SplitText(msgspec.Struct, frozen=True):
    """A text in two: `head + body` is the text, letter by letter."""

    head: str
    """With its fences, and with the byte-order mark where there is one."""
    body: str
    members: dict[str, Any]
    """What the head says: texts, and lists and mappings of them. Nothing is taken for a number, a date or a yes."""


def part(text: str) -> SplitText:
    """Front matter and what follows it. A text that begins with a rule (`---`) and says nothing of itself has none."""
    begin = len(_BOM) if text.startswith(_BOM) else 0
    opening = _FENCE.match(text, begin)
    closing = None if opening is None else _CLOSING.search(text, opening.end())
    if opening is None or closing is None:
        return SplitText(text[:begin], text[begin:], {})
    inner = text[opening.end() : closing.start()]
    members = _read(inner)
    if members is None:
        return SplitText(text[:begin], text[begin:], {})
    return SplitText(text[: closing.end()], text[closing.end() :], members)


def with_members(head: str, changes: Mapping[str, Value | None]) -> str:
    """The front matter with these members set, each in its place; new ones at the end, None removes one. Everything
    else stays as written, including comments."""
    parted = part(head)
    expected = {**parted.members, **{name: _plain(value) for name, value in changes.items()}}
    expected = {name: value for name, value in expected.items() if value is not None}
    bom = _BOM if head.startswith(_BOM) else ""
    end = "\r\n" if "\r\n" in head else "\n"
    blocks = list(_blocks(_inner(parted.head)))
    new = dict(changes)
    lines: list[str] = []
    for name, block in blocks:
        if name not in changes:
            lines.append(block if block.endswith("\n") else block + end)
        elif name in new and (value := new.pop(name)) is not None:
            lines.append(f"{name}: {written(value)}{end}")
    lines += [f"{name}: {written(value)}{end}" for name, value in new.items() if value is not None]
    made = f"{bom}---{end}{''.join(lines)}---{end}"
    if part(made).members == expected and part(made).body == "":
        return made
    return f"{bom}---{end}{_dumped(expected).replace(chr(10), end)}---{end}"


def written(value: Value) -> str:
    """A text or a list of texts on one line of YAML."""
    if isinstance(value, str):
        return _scalar(value)
    return f"[{', '.join(_scalar(item) for item in value)}]"


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_WITH_A_MEANING:
        return text
    return '"' + _NOT_AS_IT_IS.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _ESCAPED:
        return _ESCAPED[char]
    return f"\\x{ord(char):02x}" if char <= "\xff" else f"\\u{ord(char):04x}"


def _plain(value: Value | None) -> Any:
    return value if value is None or isinstance(value, str) else list(value)


def _inner(head: str) -> str:
    text = head.removeprefix(_BOM)
    opening = _FENCE.match(text)
    if opening is None:
        return ""
    closing = _CLOSING.search(text, opening.end())
    return text[opening.end() :] if closing is None else text[opening.end() : closing.start()]


def _blocks(inner: str) -> Iterator[tuple[str, str]]:
    """(name, its lines): a member ends where the next one begins. Lines before the first member have no name."""
    name, lines = "", ""
    for line in _LINE.findall(inner):
        found = _MEMBER.fullmatch(line)
        if found is not None:
            if lines:
                yield name, lines
            name, lines = found[1], ""
        elif line.startswith("#") and lines:  # a comment belongs to what follows it
            yield name, lines
            name, lines = "", ""
        lines += line
    if lines:
        yield name, lines


def _read(inner: str) -> dict[str, Any] | None:
    """The members; None where these lines are something else than members."""
    if not inner.strip():
        return {}
    if (simple := _as_written(inner)) is not None:
        return simple
    found = _by_yaml(inner) if len(inner) <= YAML_CHARS_MAX else None
    if isinstance(found, dict):
        return found
    by_line: dict[str, Any] = {}
    for line in inner.split("\n"):
        member = _MEMBER.fullmatch(line)
        if member is not None:
            by_line[member[1]] = _unquoted(member[2] or "")
    return by_line or None


def _as_written(inner: str) -> dict[str, Any] | None:
    """Members as they are written here, for which no YAML reader is needed, as long as nothing has to be escaped; None
    where one of them is anything else."""
    members: dict[str, Any] = {}
    for line in inner.removesuffix("\n").split("\n"):
        found = _SIMPLE.fullmatch(line)
        if found is None:
            return None
        name, plain, quoted, listed = found.groups()
        members[name] = plain or (
            quoted if quoted is not None else [word.strip() for word in listed.split(",")]
        )
    return members


def _by_yaml(inner: str) -> Any:
    """What PyYAML makes of it, every scalar as text. Aliases are not followed: a few lines of them make gigabytes."""
    try:
        depth = 0
        for event in yaml.parse(inner, Loader=yaml.BaseLoader):
            if isinstance(event, yaml.AliasEvent):
                return None
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEPTH_MAX:
                return None
        return yaml.load(inner, Loader=yaml.BaseLoader)  # noqa: S506 - it makes nothing but texts, lists and mappings
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return None


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _dumped(members: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(dict(members), sort_keys=False, allow_unicode=True, width=10_000)
    return text if members else ""
