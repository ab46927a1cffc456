"""What a recall is asked for: the one description of its arguments, used by `Space`, the adapters and the recall itself."""

from typing import TypedDict, Unpack

import msgspec

from memplane.clock import Instant, Moment, parse_instant
from memplane.errors import InvalidRequest
from memplane.memory.checks import check_counts, check_query
from memplane.recall.result import SPANS_MAX, Limits
from memplane.storage.filter import Audience


class RecallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One recall. Invalid values raise `InvalidRequest` when the request is made."""

    query: str
    """The user's turn or question. Only the settings limit its length, and a longer one is cut: a turn may be anything."""
    conversation: str | None = None
    """Include memories that are scoped to this conversation."""
    project: str | None = None
    """Include memories and documents that are scoped to this project; documents without a project are always searched."""
    document: str | None = None
    """Answer from this document."""
    collection: str | None = None
    """Answer from the documents of this collection."""
    reference_time: Moment | None = None
    """The time that expressions such as `last week` refer to; None: the clock's."""
    as_of: Moment | None = None
    """Answer with the memory as it was at this time."""
    include_superseded: bool = False
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        check_query(
            conversation=self.conversation,
            project=self.project,
            document=self.document,
            collection=self.collection,
        )
        if not isinstance(self.query, str):
            raise InvalidRequest(f"query: give text, not {type(self.query).__name__}", field="query")
        counts = {name: getattr(self.limits, name) for name in Limits.__struct_fields__}
        check_counts(**{name: count for name, count in counts.items() if count is not None})
        if self.limits.spans > SPANS_MAX:
            raise InvalidRequest(f"spans: give 0 to {SPANS_MAX}, not {self.limits.spans}", field="spans")
        _instant(self.reference_time, "reference_time")
        _instant(self.as_of, "as_of")

    @property
    def audience(self) -> Audience:
        """Whose scoped memories may be included."""
        return Audience(conversation=self.conversation, project=self.project)

    @property
    def reference(self) -> Instant | None:
        """`reference_time` as an instant."""
        return _instant(self.reference_time, "reference_time")

    @property
    def as_of_instant(self) -> Instant | None:
        """`as_of` as an instant."""
        return _instant(self.as_of, "as_of")


class RecallOptions(TypedDict, total=False):
    """The fields of `RecallRequest` beside its query, as keyword arguments; see there. A test compares the two."""

    conversation: str | None
    project: str | None
    document: str | None
    collection: str | None
    reference_time: Moment | None
    as_of: Moment | None
    include_superseded: bool
    limits: Limits | None
    """None: the limits of the request, or the defaults."""


def request_of(query: str | RecallRequest, **options: Unpack[RecallOptions]) -> RecallRequest:
    """A request out of a query and keyword arguments, or a given request with some of its fields replaced."""
    request = query if isinstance(query, RecallRequest) else RecallRequest(query=query)
    given = {name: value for name, value in options.items() if name != "limits" or value is not None}
    return msgspec.structs.replace(request, **given) if given else request


def _instant(moment: Moment | None, field: str) -> Instant | None:
    return None if moment is None else parse_instant(moment, field=field)
