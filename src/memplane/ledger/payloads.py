"""What a ledger entry carries, by op. Written as JSON so that a person can read an export."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Literal

import msgspec

from memplane.clock import Instant
from memplane.types import Entry, Kind, Op, Visibility


class TurnPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`turn`: something said, exactly as it came in."""

    role: str
    content: str
    at: Instant
    conversation: str | None = None
    project: str | None = None
    speaker: str | None = None
    metadata: dict[str, Any] | None = None
    scope: Visibility = Visibility.GLOBAL
    document: str | None = None
    """The id of a document that it is about, which need not be kept here."""
    document_name: str | None = None


class FileFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """The file that a memory was written in by hand: what stood before its content and after it, letter by letter."""

    path: str = ""
    """Below the folder of such files; empty where the file belongs to another memory."""
    head: str = ""
    tail: str = ""


class StorePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`store`: a typed memory, stored on purpose."""

    kind: Kind
    content: str
    at: Instant
    tags: tuple[str, ...] = ()
    conversation: str | None = None
    project: str | None = None
    page: FileFrame | None = None
    scope: Visibility = Visibility.GLOBAL
    learning: str | None = None
    """The learning that was confirmed, where compaction proposed it."""


class PutPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`put` and `run`: a value under a key."""

    key: str
    value: str
    category: str
    at: Instant
    expires: Instant | None = None
    """None for what stays until it is forgotten: files that an agent keeps."""
    tags: tuple[str, ...] = ()
    created: Instant | None = None
    """When the key began, if not now. Written here, so that it outlives the values before this one."""


class ForgetEffects(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What statements decided before they were forgotten, in ids alone: a replay, which meets them no more, decides the
    same."""

    decided: dict[str, str] = {}
    """How memories were filed that were weighed against a forgotten one: memory id to outcome."""
    ended: dict[str, list[tuple[str, str, Instant]]] = {}
    """What a forgotten memory replaced, by the entry at whose place it did: (memory, the one in its place, when)."""
    heirs: dict[str, str] = {}
    """Who took the place of a forgotten memory."""


class ForgetPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`forget` and `sweep`: what was erased, in numbers; its receipt."""

    receipt: str
    at: Instant
    scope: dict[str, Any]
    counts: dict[str, int]
    reason: str = ""
    victims: str = ""
    """A digest over the ids it buried, so that no tombstone can be added or taken away later."""
    superseded: tuple[str, ...] = ()
    """Memories that something it buried had replaced. They stay replaced, after a replay too."""
    aftermath: ForgetEffects = ForgetEffects()


class PurgePayload(msgspec.Struct, frozen=True, kw_only=True):
    """`purge`: memories superseded before then left the projection; their entries stay."""

    before: Instant
    count: int


class DerivePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`derive`: what a language model read out of one entry, kept so that a replay asks no model."""

    entry: str
    extractor: str
    claims: list[list[dict[str, Any]]]
    """For each turn of the entry, its propositions."""
    tokens_in: int = 0
    tokens_out: int = 0


class ResolvePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`resolve`: somebody decided which of two memories holds."""

    winner: str
    losers: tuple[str, ...]
    at: Instant


class DocumentPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`document`: a document, exactly as it came in. Its `ref` is the upload it replaces."""

    document: str
    name: str
    media_type: str
    at: Instant
    text: str | None = None
    data: bytes | None = None
    """What is no text; one of the two is there."""
    project: str | None = None
    created: Instant | None = None
    """When the id was first uploaded, if not now."""


class CollectPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`collect`: a collection is made or given up, a document comes into it or leaves it. The `ref` of what undoes
    something is the entry that did it."""

    action: Literal["create", "delete", "add", "remove"]
    collection: str
    at: Instant
    name: str = ""
    project: str | None = None
    ordered: bool = False
    document: str | None = None
    position: int | None = None


class DistilPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`distil`: what a language model made of a document, kept so that a replay asks no model."""

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
    """`feedback`: what an agent made of what it was told, in ids alone."""

    recall: str
    selected: tuple[str, ...]
    ignored: tuple[str, ...]
    at: Instant
    rating: int | None = None


class PromotePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`learn`, `digest` and `summarize`: what compaction keeps of a raw day, with the words it was read from. A learning
    is a draft that somebody confirms or rejects; a digest line is a part of its week's digest; what was said last in a
    thread is a part of its day's summary. Nothing in it is about when or where it was compacted, so that two machines that
    compact the same day write the same entry."""

    day: str
    kind: str
    """Of a learning, the kind of the memory it would be; of a digest line, what sort of line; of what was said last, the
    role of who said it."""
    text: str
    at: Instant
    """When it was said."""
    sources: tuple[str, ...]
    """The entries it was read from. It is forgotten with the first of them that is forgotten, but not when retention
    takes them: that is what it is kept for."""
    quote: str = ""
    conversation: str | None = None
    project: str | None = None
    scope: Visibility = Visibility.GLOBAL
    document: str | None = None
    """The id of a document that it is about."""
    speaker: str | None = None
    line: dict[str, Any] | None = None
    """Where it was a line of another program's log, what that said of the thread."""


KEEPING = (Op.LEARN, Op.DIGEST, Op.SUMMARIZE)
"""Ops whose payload is a `PromotePayload`."""

INTERACTION = "interaction"
"""In the metadata of a turn that was a line of another program's log: what the line said beyond what a turn has a place
for."""


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """What compaction decided about one thing of a raw entry."""

    entry: str
    item: str
    """A memory's id, or `turn-` and the number of a turn of the entry."""
    outcome: str
    """`learn`, `digest` or `discard`."""
    into: str = ""
    """The entry it was promoted to."""
    reason: str = ""


class CompactPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`compact`: what was decided about entries of a day, in ids alone."""

    day: str
    judgements: tuple[Judgement, ...]


class DecidePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`decide`: somebody, or the policy, confirmed or rejected a learning."""

    learning: str
    confirmed: bool
    by: str
    memory: str | None = None
    """What a confirmed one became."""


class ReleasePayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`release`: somebody looked at what was flagged, and it is told as any other."""

    id: str
    """A memory's, or an entry's: then everything that was read out of it is released."""
    at: Instant


class PinPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`pin`: somebody wants a memory always told, or no longer."""

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
    """The payload of an entry that has one; a `history` entry is a line of its own format and not for here."""
    if entry.body is None:
        raise ValueError(f"entry {entry.id} is erased")
    return decode_body(entry.op, entry.body)


def decode_body(op: Op, body: bytes) -> Payload:
    return _DECODERS[op].decode(body)
