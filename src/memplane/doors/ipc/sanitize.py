"""The last look at an answer: no secret leaves, whatever it was stored as, and each is written as Carapace writes it."""

import re
from typing import Any

from memplane.governance.redact import CARAPACE, redact
from memplane.governance.redact.rule import PLACEHOLDER

PLACEHOLDER_TEXT = CARAPACE.placeholder

_ADDRESS = re.compile(
    r"\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp)://\S{0,512}?\[REDACTED\]\S*", re.IGNORECASE
)
"""Memory is kept without the password alone; Carapace shows nothing of such an address."""


def sanitize(value: Any, path: str = "$") -> tuple[Any, list[str]]:
    """A deep copy without secrets, and the paths of the texts that held any. Names of members stay as they are."""
    match value:
        case str():
            clean = sanitize_text(value)
            return clean, [path] if clean != value else []
        case dict():
            parts = {name: sanitize(inner, f"{path}.{name}") for name, inner in value.items()}
            return {name: part for name, (part, _) in parts.items()}, _paths(parts.values())
        case list() | tuple():
            items = [sanitize(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
            return [item for item, _ in items], _paths(items)
    return value, []


def sanitize_text(text: str) -> str:
    clean = redact(text, CARAPACE).text
    if "[REDACTED" in clean or "[redacted" in clean:
        clean = _ADDRESS.sub(PLACEHOLDER_TEXT, PLACEHOLDER.sub(PLACEHOLDER_TEXT, clean))
    return clean


def _paths(parts: Any) -> list[str]:
    return [path for _, paths in parts for path in paths]
