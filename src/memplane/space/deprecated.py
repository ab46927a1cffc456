"""Names that methods of `Space` had in earlier documentation. They still work, with a `DeprecationWarning`."""

import warnings
from operator import attrgetter
from typing import TYPE_CHECKING, Any

MOVED = {
    "upload": "documents.upload",
    "upload_whole": "documents.upload_whole",
    "document": "documents.get",
    "document_count": "documents.count",
    "whole_document": "documents.get_whole",
    "document_text": "documents.text",
    "sections": "documents.sections",
    "spans": "documents.spans",
    "delete_document": "documents.delete",
    "create_collection": "documents.create_collection",
    "collection": "documents.collection",
    "collections": "documents.collections",
    "members": "documents.members",
    "delete_collection": "documents.delete_collection",
    "add_to_collection": "documents.add_to_collection",
    "remove_from_collection": "documents.remove_from_collection",
    "file": "files.read",
    "create_file": "files.create",
    "edit_file": "files.edit",
    "rename_file": "files.rename",
    "delete_file": "files.delete",
    "categories": "facts.categories",
    "record_run": "facts.record_run",
    "defaults": "facts.defaults",
    "plans": "facts.plans",
    "sweep": "facts.sweep",
    "conflicts": "review.conflicts",
    "resolve": "review.resolve",
    "learnings": "review.drafts",
    "confirm": "review.confirm",
    "reject": "review.reject",
    "quarantine": "review.quarantine",
    "quarantine_count": "review.quarantine_count",
    "release": "review.release",
    "forget_suspects": "review.forget_quarantined",
    "pin": "review.pin",
    "judgements": "review.judgements",
    "stats": "overview.stats",
    "lag": "overview.lag",
    "enrichment": "overview.enrichment",
    "retention": "overview.retention",
    "told_count": "overview.recall_count",
    "chain": "overview.chain",
    "lineage": "overview.lineage",
    "digest_lines": "overview.digest_lines",
    "entries": "ledger.entries",
    "said": "ledger.turn_seqs",
    "said_since": "ledger.turn_seqs_since",
    "bookmark": "ledger.bookmark",
    "set_bookmark": "ledger.set_bookmark",
    "verify": "ledger.verify",
    "replay": "ledger.replay",
    "receipts": "ledger.receipts",
    "tombstones": "ledger.tombstones",
    "audit": "ledger.audit",
    "check": "ledger.check",
    "wipe": "ledger.wipe",
}
"""The old name of each method, and where it is now."""


def moved_attribute(space: object, name: str) -> object:
    """The attribute that an old name stands for; `AttributeError` for any other name."""
    if name not in MOVED:
        raise AttributeError(f"{type(space).__name__!r} object has no attribute {name!r}")
    warnings.warn(f"space.{name} is now space.{MOVED[name]}", DeprecationWarning, stacklevel=3)
    return attrgetter(MOVED[name])(space)


class CallableListing:
    """A sub-object of `Space` whose name was a method: calling it still lists."""

    if not TYPE_CHECKING:  # a type checker reports the old call

        def __call__(self, *args: Any, **options: Any) -> object:
            name = type(self).__name__.lower()
            warnings.warn(f"space.{name}() is now space.{name}.list()", DeprecationWarning, stacklevel=2)
            return self.list(*args, **options)
