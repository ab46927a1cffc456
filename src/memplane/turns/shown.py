"""What a turn was told, as a header of its answer says it: always how the recall went, and the blocks to whoever asks."""

import base64
import binascii

import msgspec

from memplane.governance.outgoing import RecalledBlock
from memplane.services.outcome import Recalled

RECALL_HEADER = "x-memplane-recall"
"""`succeeded; blocks=2; bytes=310`. `show` in a request asks for the blocks."""
TOLD_HEADER = "x-memplane-told"
SHOW = "show"

_BYTES_MAX = 32 * 1024
"""Of the header; clients take no line of more than 64 KiB."""


class Shown(msgspec.Struct, frozen=True):
    """The blocks that were put into the prompt."""

    memories: tuple[RecalledBlock, ...] = ()


_SHOWN = msgspec.json.Decoder(Shown)


def summary_of(recalled: Recalled) -> str:
    size = len(recalled.text.encode("utf-8", "replace"))
    return f"{recalled.status.value}; blocks={len(recalled.blocks)}; bytes={size}"


def spell_blocks(recalled: Recalled) -> str:
    """JSON in base64, since a header is ASCII and memories are not; the first blocks where all would be too long."""
    for count in range(len(recalled.blocks), -1, -1):
        spelled = base64.b64encode(msgspec.json.encode(Shown(recalled.blocks[:count])))
        if len(spelled) <= _BYTES_MAX:
            break
    return spelled.decode("ascii")


def read_blocks(header: str | None) -> tuple[RecalledBlock, ...]:
    """None where nothing, or nothing that can be read, is said."""
    try:
        return _SHOWN.decode(base64.b64decode(header or "", validate=True)).memories
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return ()
