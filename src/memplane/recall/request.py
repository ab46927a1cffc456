"""A question as it comes in."""

import msgspec

from memplane.clock import Instant
from memplane.recall.result import Limits
from memplane.storage.filter import Audience


class RecallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and from where."""

    query: str
    conversation: str | None = None
    project: str | None = None
    document: str | None = None
    """Tell this document; None: whichever has something to say."""
    collection: str | None = None
    reference: Instant | None = None
    """The now of `last week`; None: the clock's."""
    as_of: Instant | None = None
    include_superseded: bool = False
    limits: Limits = Limits()

    @property
    def audience(self) -> Audience:
        return Audience(conversation=self.conversation, project=self.project)
