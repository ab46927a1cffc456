"""One channel of the candidates of a recall at a time."""

import msgspec

from memplane.storage.recall_reads import CandidateQuery

_NOTHING = CandidateQuery(
    where=None,
    conversation=None,
    turns=0,
    predicates=(),
    per_predicate=0,
    words=(),
    times=(),
    per_channel=0,
    hot=0,
    newest=False,
)


def candidates(reader, where, **channels):
    return reader.recall.candidates(msgspec.structs.replace(_NOTHING, where=where, **channels))


def episodes(reader, conversations, where, *, limit):
    return [
        episode
        for conversation in conversations
        for episode in reader.recall.context([], [], conversation, where, episodes_max=limit)[2]
    ]
