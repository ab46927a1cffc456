"""Which format a content is."""

PLAIN = "text/plain"
MARKDOWN = "text/markdown"


def media_type_of(content: str | bytes, media_type: str | None, name: str) -> str:
    """What it is said to be, or looks like."""
    return media_type or (MARKDOWN if name.endswith(".md") or "\n#" in f"\n{content!r}" else PLAIN)
