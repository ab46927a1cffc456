"""How files of a tree are called. A name is made of plain letters, says what it is about, and is that of one thing only."""

import re
import unicodedata
import uuid
from hashlib import sha256

from memplane.errors import InvalidRequest
from memplane.safety.sanitize import one_line, shortened
from memplane.types import Kind

BEHAVIORAL = "behavioral"
CLAUDE = "claude_memory"
PREFIXES = (BEHAVIORAL, CLAUDE)
"""Folders of memories; both are read, one is written."""
INTERACTIONS, STATE, FILES, LEDGER = "interactions", "state", "files", "ledger"
SUMMARIES, DIGESTS = "summaries", "compacted"
GENERATED = (SUMMARIES, DIGESTS)
"""Folders of what is made out of the rest: read by people, written by programs."""
INDEX = "MEMORY.md"
FACTS = f"{STATE}/facts.json"
WRITTEN = f"{STATE}/tree.json"
"""What was written last, so that a reader of the tree can distinguish an edit from an older version."""

TYPES = {
    Kind.PREFERENCE: "user",
    Kind.INSTRUCTION: "feedback",
    Kind.CORRECTION: "feedback",
    Kind.CONTEXT: "project",
    Kind.FACT: "reference",
}
_KINDS = {
    "user": Kind.PREFERENCE,
    "feedback": Kind.INSTRUCTION,
    "project": Kind.CONTEXT,
    "reference": Kind.FACT,
}

PATH_CHARS_MAX = 900
_SLUG_CHARS_MAX = 40
_TITLE_CHARS_MAX = 60
_DESCRIPTION_CHARS_MAX = 150
_MARKS = "#*>-_`~ \t"
_NO_SLUG = re.compile(r"[^a-z0-9]+")
_NOT_IN_A_NAME = re.compile(r'[%<>:"|?*\x00-\x1f]|[. ]\Z')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|\Z)", re.IGNORECASE)
_QUOTED = re.compile(r"%([0-9a-f]{2})")


def kind_of(type_: str) -> Kind:
    """The kind of memory for a file type; files of unknown types become context."""
    return _KINDS.get(type_, Kind.CONTEXT)


def title_of(text: str) -> str:
    """The first words of it, for a list."""
    first = next((line for line in text.splitlines() if line.strip(_MARKS)), text)
    return shortened(one_line(first).lstrip(_MARKS).rstrip(), _TITLE_CHARS_MAX) or "memory"


def description_of(text: str) -> str:
    return shortened(" ".join(one_line(text).split()), _DESCRIPTION_CHARS_MAX)


def file_name(id_: str, kind: Kind, text: str) -> str:
    """`feedback_answer-in-french-1f3a….md`. The digits are those of the id: no other memory has this name."""
    plain = unicodedata.normalize("NFKD", title_of(text)).encode("ascii", "ignore").decode().lower()
    slug = _NO_SLUG.sub("-", plain)[:_SLUG_CHARS_MAX].strip("-") or "memory"
    return f"{TYPES[kind]}_{slug}-{digits_of(id_)}.md"


def digits_of(id_: str, count: int = 12) -> str:
    return sha256(id_.encode("utf-8")).hexdigest()[:count]


def memory_id(*parts: str) -> str:
    """An id derived from these values: every reader of the same file derives the same one."""
    digest = sha256("\x00".join(("tree", *parts)).encode("utf-8")).digest()
    return f"mem-{uuid.UUID(bytes=digest[:16])}"


def put_id(*parts: str) -> str:
    return f"put-{sha256(chr(0).join(('tree', *parts)).encode('utf-8')).hexdigest()[:32]}"


def check_path(path: str) -> None:
    """Validate a relative path. It is not used for the local disk here, but a later reader might do so."""
    parts = path.split("/")
    if not path or len(path) > PATH_CHARS_MAX or any(part in ("", ".", "..") for part in parts):
        raise InvalidRequest("the path is none that a tree could have", field="path")
    if "\\" in path or not path.isprintable():
        raise InvalidRequest(
            "the path holds a backslash or what cannot be seen; rename the file", field="path"
        )


def below(path: str, folder: str) -> str | None:
    """The rest of the path, where it leads into the folder."""
    return path[len(folder) + 1 :] if path.startswith(f"{folder}/") else None


def quoted(path: str) -> str:
    """As a path that every file system takes; `unquoted` leads back."""
    return "/".join(_DEVICE.sub(_quote_first, _NOT_IN_A_NAME.sub(_quote, part)) for part in path.split("/"))


def unquoted(path: str) -> str:
    return _QUOTED.sub(lambda found: chr(int(found[1], 16)), path)


def _quote(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02x}"


def _quote_first(found: re.Match[str]) -> str:
    return f"%{ord(found[0][0]):02x}{found[0][1:]}"
