"""The id of a recall says itself what was told to whom, so that feedback finds it at any process and at any time, and
nothing is kept for the many recalls that nobody gives feedback to."""

import base64
import binascii
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from memplane.clock import Instant, to_instant
from memplane.doors.http.refusal import Refused

_PREFIX = "r1_"
_CHARS_MAX = 32_768
_TOLD_MAX = 400
"""More than a recall can be asked for."""
_LAST: Instant = to_instant(datetime.max.replace(tzinfo=UTC))


class Told(msgspec.Struct, frozen=True, array_like=True):
    """Whom what was told, and when."""

    owner: Annotated[str, msgspec.Meta(min_length=1)]
    at: Annotated[Instant, msgspec.Meta(ge=0, le=_LAST)]
    facts: Annotated[tuple[str, ...], msgspec.Meta(max_length=_TOLD_MAX)]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Told)


def recall_id_of(told: Told) -> str:
    kept = msgspec.structs.replace(told, facts=told.facts[:_TOLD_MAX])
    return _PREFIX + base64.urlsafe_b64encode(_encode(kept)).decode().rstrip("=")


def read_recall_id(text: str) -> Told:
    """Whoever makes one up reaches no further than their credential does, and facts that are not there are passed over."""
    try:
        if not text.startswith(_PREFIX) or len(text) > _CHARS_MAX:
            raise ValueError(text)
        coded = text.removeprefix(_PREFIX)
        return _decoder.decode(base64.b64decode(coded + "=" * (-len(coded) % 4), b"-_", validate=True))
    except (ValueError, binascii.Error, msgspec.MsgspecError) as exc:
        raise Refused(404, "not_found", "no recall has this id; give the recall_id of an answer") from exc
