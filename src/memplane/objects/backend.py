"""Text under keys: what programs that keep their memory in plain files ask of a place for it."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class TextBackend(Protocol):
    """Text under keys, which are relative paths with `/` between their parts. Written as UTF-8."""

    def read_text(self, key: str) -> str | None:
        """The whole text; None where there is none."""

    def write_text(self, key: str, content: str) -> None:
        """Replace the whole text, or create it."""

    def append_text(self, key: str, content: str) -> None:
        """Add to its end, or create it."""

    def exists(self, key: str) -> bool:
        """Whether there is text under this key."""

    def list(self, prefix: str = "") -> list[str]:
        """Every key that begins with `prefix`, in no particular order."""
