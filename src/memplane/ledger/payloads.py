"""The payload of a ledger entry, by op. Written as JSON so a person can read an export."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Literal

import msgspec

from memplane.clock import Instant
from memplane.types import Entry, Kind, Op, Visibility


class TurnPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`turn`: a message, exactly as received."""

    role: str
    content: str
    at: Instant
    conversation: str | None = None
    project: str | None = None
    speaker: str | None = None
    metadata: dict[str, Any] | None = None
    scope: Visibility = Visibility.GLOBAL
    document: str | None = None
    """The id of a document it refers to, which need not be stored here."""
    document_name: str | None = None


class FileFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """The hand-written file a memory came from: the exact text before and after its content."""

    path: str = ""
    """Path below the folder of such files; empty if the file belongs to another memory."""
    head: str = ""
    tail: str = ""


class StorePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`store`: a typed memory stored by a caller."""

    kind: Kind
    content: str
    at: Instant
    tags: tuple[str, ...] = ()
    conversation: str | None = None
    project: str | None = None
    page: FileFrame | None = None
    scope: Visibility = Visibility.GLOBAL
    learning: str | None = None
    """The confirmed draft, if compaction proposed it."""


class PutPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`put` and `run`: a value under a key."""

    key: str
    value: str
    category: str
    at: Instant
    expires: Instant | None = None
    """None for values without expiry, such as agent files."""
    tags: tuple[str, ...] = ()
    created: Instant | None = None
    """When the key was created, if not now. Recorded here so it outlives earlier values."""


class ForgetEffects(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Decisions made by forgotten statements, in ids only, so that a replay decides the same."""

    decided: dict[str, str] = {}
    """Outcomes of memories that were compared with a forgotten one: memory id to outcome."""
    ended: dict[str, list[tuple[str, str, Instant]]] = {}
    """What a forgotten memory superseded, by the entry where it did: (memory, its successor, when)."""
    heirs: dict[str, str] = {}
    """The successors of forgotten memories."""
    windows: dict[str, list[Any]] = {}
    """How far the memories in `decided` were compared with others, where that was limited: a `RivalWindow`."""


class ForgetPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`forget` and `sweep`: counts of what was erased, and the receipt."""

    receipt: str
    at: Instant
    scope: dict[str, Any]
    counts: dict[str, int]
    reason: str = ""
    victims: str = ""
    """A digest over the forgotten ids, so that no tombstone can be added or removed later."""
    superseded: tuple[str, ...] = ()
    """Memories superseded by a forgotten one. They stay superseded, also after a replay."""
    aftermath: ForgetEffects = ForgetEffects()


class PurgePayload(msgspec.Struct, frozen=True, kw_only=True):
    """`purge`: memories superseded before then left the projection; their entries remain."""

    before: Instant
    count: int


class DerivePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`derive`: an LLM's answer about one entry, kept so that a replay calls no LLM."""

    entry: str
    extractor: str
    claims: list[list[dict[str, Any]]]
    """The propositions of each turn of the entry."""
    tokens_in: int = 0
    tokens_out: int = 0


class ResolvePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`resolve`: the decision which of two memories is correct."""

    winner: str
    losers: tuple[str, ...]
    at: Instant


class DocumentPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`document`: an upload, exactly as received. Its `ref` is the upload it replaces."""

    document: str
    name: str
    media_type: str
    at: Instant
    text: str | None = None
    data: bytes | None = None
    """Binary content; either this or the text is set."""
    project: str | None = None
    created: Instant | None = None
    """When the id was first uploaded, if not now."""


class CollectPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`collect`: a collection is created or deleted, or a document is added or removed. The `ref` of an undo is the
    entry it undoes."""

    action: Literal["create", "delete", "add", "remove"]
    collection: str
    at: Instant
    name: str = ""
    project: str | None = None
    ordered: bool = False
    document: str | None = None
    position: int | None = None


class DistilPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`distil`: an LLM's summary of a document, kept so that a replay calls no LLM."""

    entry: str
    """The upload it was made from."""
    document: str
    whole: str
    sections: tuple[str | None, ...]
    """By ordinal."""
    model: str
    at: Instant
    project: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0


class FeedbackPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`feedback`: which returned memories an agent used, in ids only."""

    recall: str
    selected: tuple[str, ...]
    ignored: tuple[str, ...]
    at: Instant
    rating: int | None = None


class PromotePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`learn`, `digest` and `summarize`: what compaction keeps of a raw day, with its source text. A learning is a
    draft to be confirmed or rejected; a digest line is part of its week's digest; the last message of a thread is
    part of its day's summary. It contains nothing about when or where it was compacted, so two machines that compact
    the same day write the same entry."""

    day: str
    kind: str
    """For a learning, the kind of the resulting memory; for a digest line, the kind of line; for a thread, the role
    of its last speaker."""
    text: str
    at: Instant
    """When it was said."""
    sources: tuple[str, ...]
    """Its source entries. It is forgotten with the first of them that is forgotten, but kept when retention removes
    them."""
    quote: str = ""
    conversation: str | None = None
    project: str | None = None
    scope: Visibility = Visibility.GLOBAL
    document: str | None = None
    """The id of a document it refers to."""
    speaker: str | None = None
    line: dict[str, Any] | None = None
    """Thread metadata, if it was a line of another program's log."""


KEEPING = (Op.LEARN, Op.DIGEST, Op.SUMMARIZE)
"""Ops whose payload is a `PromotePayload`."""

INTERACTION = "interaction"
"""In the metadata of a turn imported from another program's log: the fields a turn has no place for."""


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """Compaction's decision about one item of a raw entry."""

    entry: str
    item: str
    """A memory id, or `turn-` and the number of a turn of the entry."""
    outcome: str
    """`learn`, `digest` or `discard`."""
    into: str = ""
    """The entry it was promoted to."""
    reason: str = ""


class CompactPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`compact`: decisions about the entries of a day, in ids only."""

    day: str
    judgements: tuple[Judgement, ...]


class DecidePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`decide`: a person or the policy confirmed or rejected a draft."""

    learning: str
    confirmed: bool
    by: str
    memory: str | None = None
    """The memory a confirmed draft became."""


class ReleasePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`release`: a person released a flagged memory or entry from quarantine."""

    id: str
    """The id of a memory, or of an entry: then everything derived from it is released."""
    at: Instant


class PinPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`pin`: a person pinned or unpinned a memory."""

    memory: str
    at: Instant
    pinned: bool = True


Payload = (
    TurnPayload
    | StorePayload
    | PutPayload
    | ForgetPayload
    | PurgePayload
    | DerivePayload
    | ResolvePayload
    | DocumentPayload
    | CollectPayload
    | DistilPayload
    | FeedbackPayload
    | PromotePayload
    | CompactPayload
    | DecidePayload
    | ReleasePayload
    | PinPayload
)

_encode = msgspec.json.Encoder().encode
_DECODERS: dict[Op, msgspec.json.Decoder[Payload]] = {
    Op.TURN: msgspec.json.Decoder(TurnPayload),
    Op.STORE: msgspec.json.Decoder(StorePayload),
    Op.PUT: msgspec.json.Decoder(PutPayload),
    Op.RUN: msgspec.json.Decoder(PutPayload),
    Op.FORGET: msgspec.json.Decoder(ForgetPayload),
    Op.SWEEP: msgspec.json.Decoder(ForgetPayload),
    Op.PURGE: msgspec.json.Decoder(PurgePayload),
    Op.DERIVE: msgspec.json.Decoder(DerivePayload),
    Op.RESOLVE: msgspec.json.Decoder(ResolvePayload),
    Op.DOCUMENT: msgspec.json.Decoder(DocumentPayload),
    Op.COLLECT: msgspec.json.Decoder(CollectPayload),
    Op.DISTIL: msgspec.json.Decoder(DistilPayload),
    Op.FEEDBACK: msgspec.json.Decoder(FeedbackPayload),
    **{op: msgspec.json.Decoder(PromotePayload) for op in KEEPING},
    Op.COMPACT: msgspec.json.Decoder(CompactPayload),
    Op.DECIDE: msgspec.json.Decoder(DecidePayload),
    Op.RELEASE: msgspec.json.Decoder(ReleasePayload),
    Op.PIN: msgspec.json.Decoder(PinPayload),
}


def forgotten_ids_digest(ids: Iterable[str]) -> str:
    return sha256("\n".join(sorted(ids)).encode("utf-8")).hexdigest()


def encode(payload: Payload) -> bytes:
    return _encode(payload)


def decode(entry: Entry) -> Payload:
    """The payload of an entry that has one; a `history` entry has its own line format and is not decoded here."""
    if entry.body is None:
        raise ValueError(f"entry {entry.id} is erased")
    return decode_body(entry.op, entry.body)


def decode_body(op: Op, body: bytes) -> Payload:
    return _DECODERS[op].decode(body)
