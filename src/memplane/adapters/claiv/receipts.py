"""Deletion receipts and usage."""

from collections.abc import Collection

from starlette.responses import Response

from memplane.adapters.claiv.shapes import DeletedCounts, DeletionReceipt, DeletionScope, ReceiptList
from memplane.adapters.claiv.wire import answer
from memplane.auth.usage import Period
from memplane.clock import iso
from memplane.engine import Engine
from memplane.server.endpoint import HttpCall, Query
from memplane.types import Receipt


class Receipts:
    """Serves receipts of one user, or of all users that the credential may access."""

    def __init__(self, plane: Engine) -> None:
        self._plane = plane

    def list(self, call: HttpCall) -> Response:
        limit, offset = call.query["limit"], call.query["offset"]
        page = self._plane.receipts(call.principal.tenant, owners=_owners(call), limit=limit, offset=offset)
        return answer(
            ReceiptList(
                receipts=[receipt_of(one.receipt, one.owner) for one in page.receipts],
                total=page.total,
                limit=limit,
                offset=offset,
            )
        )

    def one(self, call: HttpCall) -> Response:
        found = self._plane.receipt(
            call.principal.tenant, call.path_params["receipt_id"], owners=_owners(call)
        )
        return answer(receipt_of(found.receipt, found.owner))


def _owners(call: HttpCall) -> Collection[str] | None:
    """The users whose receipts the caller may see; None means all users."""
    user = call.query["user_id"]
    if user is None:
        return call.principal.spaces
    call.check_opens(user)
    return (user,)


def counts_of(receipt: Receipt) -> DeletedCounts:
    """Counts in CLAIV's terms: a ledger entry is an event, a piece of evidence is a claim, and an unresolved conflict
    is an open loop."""
    counts = receipt.counts
    return DeletedCounts(
        events=counts.get("turns", 0),
        chunks=counts.get("spans", 0),
        episodes=counts.get("episodes", 0),
        facts=counts.get("memories", 0) + counts.get("facts", 0),
        claims=counts.get("claims", 0),
        open_loops=counts.get("conflicts", 0),
    )


def receipt_of(receipt: Receipt, owner: str) -> DeletionReceipt:
    """A forget completes before the response, so both times are equal."""
    scope = receipt.scope
    return DeletionReceipt(
        receipt_id=receipt.id,
        scope=DeletionScope(
            user_id=owner,
            conversation_id=scope.get("conversation"),
            project_id=scope.get("project"),
            thread_id=None,
            from_time=scope.get("since"),
            to_time=scope.get("until"),
            document_id=scope.get("document"),
        ),
        requested_at=iso(receipt.at),
        completed_at=iso(receipt.at),
        deleted_counts=counts_of(receipt),
        seq=receipt.seq,
        digest=receipt.digest,
        off_disk=receipt.off_disk,
    )


# Usage and quota of a tenant.


RANGE = Query(
    name="range",
    type=Period,
    default="7d",
    description="The last seven or thirty days, the month of the calendar so far, or today; in UTC.",
)


class UsageHandler:
    """Endpoints under `/v1/usage`, for the tenant of the key. A key of some spaces is not told about the others."""

    def __init__(self, plane: Engine) -> None:
        self._plane = plane

    def summary(self, call: HttpCall) -> Response:
        return answer(self._plane.usage.summary(_whole(call), call.query["range"]))

    def breakdown(self, call: HttpCall) -> Response:
        return answer(self._plane.usage.breakdown(_whole(call), call.query["range"]))

    def limits(self, call: HttpCall) -> Response:
        return answer(self._plane.usage.limits(_whole(call)))


def _whole(call: HttpCall) -> str:
    call.principal.check_whole()
    return call.principal.tenant
