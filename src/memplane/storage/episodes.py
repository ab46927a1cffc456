"""Conversations that are told in short, and those that are not yet told to the end."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.storage.filter import Filter
from memplane.types import Memory, Turn


class OpenSitting(msgspec.Struct, frozen=True, gc=False):
    """A conversation that goes on beyond its last episode."""

    conversation: str
    first: int
    """The number of the first turn that no episode tells."""
    last_at: Instant


class EpisodeReader(Protocol):
    """What telling asks of a store, beside `Reader`."""

    def untold(self, *, before: Instant, limit: int) -> list[OpenSitting]:
        """Conversations whose last turn was before then and that no episode tells to the end."""

    def untold_in(self, conversation: str) -> OpenSitting | None:
        """What no episode tells of a conversation."""

    def turns_of(self, conversation: str, *, since: int) -> list[Turn]:
        """The turns of a conversation with n >= since, in order."""

    def last_turn_of(self, conversation: str, *, before: int) -> Turn | None:
        """The turn of a conversation with the largest n < before."""

    def episode_count(self, conversations: Sequence[str]) -> int:
        """How many episodes tell of these conversations."""

    def conversations_of(self, seqs: Sequence[int]) -> list[str]:
        """The conversations that turns of these entries belong to."""

    def episodes_of(self, conversations: Sequence[str], where: Filter, *, limit: int) -> list[Memory]:
        """The newest episodes of these conversations that pass the filter, all together."""


class EpisodeWriter(Protocol):
    """The same inside a write transaction."""

    def add_episodes(self, episodes: Sequence[tuple[Memory, Sequence[int]]]) -> None:
        """Memories of kind episode, each with the seqs of the entries it quotes; they go with the first of these."""

    def drop_episodes(self, conversation: str) -> None:
        """Take a conversation's episodes away, so that it can be told anew."""

    def set_untold(self, untold: OpenSitting) -> None:
        """Add or replace."""

    def set_told(self, conversation: str) -> None:
        """Episodes tell it to the end."""
