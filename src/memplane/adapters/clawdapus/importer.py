"""Import and export session histories: Clawdapus' `history.jsonl`, with recomputed and verified ids."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from memplane.ledger.gojson import Json
from memplane.ledger.history import HistoryLine, Payload, RejectedLine, compose_line, read_history
from memplane.ledger.history_text import WITHIN, scrub_line
from memplane.ledger.payloads import TurnPayload, decode
from memplane.space import Space
from memplane.transfer.full import ImportReport, ImportTally
from memplane.types import Entry, LoadResult, NewEntry, Op, Role, within

_CHUNK = 5_000
_LINES_AT_ONCE = 8
"""A line may be megabytes long."""
_OWN_ID = "memplane_id"
_OWN_ID_KEY = b'"memplane_id"'


class _Metadata(msgspec.Struct, frozen=True):
    """The field of an exported line that describes its original turn."""

    memplane_id: str | None = None


class _Request(msgspec.Struct, frozen=True):
    """The request of an exported line."""

    metadata: _Metadata = _Metadata()


class _Own(msgspec.Struct, frozen=True):
    """An exported line."""

    request_original: _Request = _Request()


_own = msgspec.json.Decoder(_Own)


def import_history(
    space: Space, path: Path, *, trust_ids: bool, progress: Callable[[int, int], None]
) -> ImportReport:
    """Append every line to the ledger first, so that it is durable, then index all of them."""
    report = append_history(space, path, trust_ids=trust_ids, progress=progress)
    space.ledger.catch_up()
    return report


def append_history(
    space: Space,
    path: Path,
    *,
    trust_ids: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ImportReport:
    """Append every line to the ledger; they are durable when this returns."""
    tally = ImportTally("history")
    reader = read_history(path, trust_ids=trust_ids)
    caller = space.caller
    drafts: list[NewEntry] = []
    for item in reader:
        tally.read += 1
        if isinstance(item, RejectedLine):
            tally.reject(item)
            continue
        tally.legacy += item.legacy
        drafts.append(NewEntry(item.id, Op.HISTORY, item.line, caller))
        if len(drafts) == _CHUNK:
            _load(space, drafts, tally)
            drafts.clear()
            progress(reader.bytes_read, reader.bytes_total)
    _load(space, drafts, tally)
    progress(reader.bytes_total, reader.bytes_total)
    return tally.report()


def _load(space: Space, drafts: list[NewEntry], tally: ImportTally) -> None:
    """A line exported by Memplane is its original turn: known if the turn still exists, forgotten otherwise."""
    ours = {draft.id: id_ for draft in drafts if (id_ := _own_id(draft.body))}
    if ours:
        known, forgotten = space.ledger.status(list(ours.values()))
        tally.load(
            LoadResult(
                added=0,
                known=sum(id_ in known for id_ in ours.values()),
                forgotten=sum(id_ in forgotten for id_ in ours.values()),
            )
        )
        drafts = [draft for draft in drafts if ours.get(draft.id) not in known | forgotten]
    if drafts:
        tally.load(space.ledger.load(drafts))


def _own_id(line: bytes) -> str | None:
    if _OWN_ID_KEY not in line:
        return None
    try:
        return _own.decode(line).request_original.metadata.memplane_id
    except msgspec.MsgspecError:
        return None


def append_lines(space: Space, lines: Sequence[HistoryLine]) -> LoadResult:
    """Import lines of other origin, without known or forgotten ids. They are durable when this returns, and
    searchable after `catch_up`."""
    tally = ImportTally("history")
    _load(space, [NewEntry(line.id, Op.HISTORY, line.line, space.caller) for line in lines], tally)
    return tally.loaded


def history_lines(space: Space) -> Iterator[bytes]:
    """Export every turn as a line of a session history: imported lines byte for byte, Memplane's own turns in the
    same format."""
    for entry in entries_of(space):
        yield from _line_of(space, entry)


def scrubbed_lines(space: Space, seqs: Sequence[int]) -> Iterator[bytes]:
    """Export these entries in this order, without secrets. Entries forgotten since the query are skipped."""
    for begin in range(0, len(seqs), _LINES_AT_ONCE):
        wanted = seqs[begin : begin + _LINES_AT_ONCE]
        found = {entry.seq: entry for entry in space.ledger.entries_at(wanted)}
        for seq in wanted:
            if seq in found:
                yield from (scrub_line(line)[0] for line in _line_of(space, found[seq]))


def _line_of(space: Space, entry: Entry) -> Iterator[bytes]:
    if entry.body is None:
        return
    if entry.op is Op.HISTORY:
        yield entry.body
    elif entry.op is Op.TURN:
        yield _composed(space, entry).line


def entries_of(space: Space) -> Iterator[Entry]:
    seq = 0
    while entries := space.ledger.entries(after=seq):
        yield from entries
        seq = entries[-1].seq


def _composed(space: Space, entry: Entry) -> HistoryLine:
    said = decode(entry)
    assert isinstance(said, TurnPayload)
    # An entry's id is a hash of the line. Including Memplane's id separates two equal turns in the same second.
    metadata: dict[str, Json] = {_OWN_ID: entry.id}
    if said.conversation is not None:
        metadata["conversation_id"] = said.conversation
    if (place := within(said.scope, conversation=said.conversation, project=said.project)) is not None:
        metadata[WITHIN] = place
    message: dict[str, Json] = {"role": said.role, "content": said.content}
    answered = said.role == Role.ASSISTANT
    request: dict[str, Json] = {"messages": [] if answered else [message], "metadata": metadata}
    return compose_line(
        at=said.at,
        claw_id=space.owner,
        path="/v1/chat/completions",
        requested_model="memplane/retained",
        effective_provider="memplane",
        effective_model="retained",
        request_original=request,
        request_effective=request,
        response=Payload(json={"choices": [{"index": 0, "message": message}] if answered else []}),
    )
