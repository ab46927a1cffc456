"""Files that are made out of the ledger for people to read: digests and summaries. Other programs write such files too; the
note tells ours from theirs, so that ours can be written anew, and theirs stay as they are."""

from typing import Final

NOTE: Final = (
    "Memplane writes this file anew whenever its memory changes. Without this note it is left as it is."
)
COMMENT: Final = f"<!-- {NOTE} -->"
"""The note, in Markdown and HTML."""

_HEAD_BYTES = 400


def is_made(data: bytes) -> bool:
    """Whether one of us wrote it, so that everything in it is in the ledger."""
    return NOTE.encode() in data[:_HEAD_BYTES]
