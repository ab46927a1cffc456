"""Proof: receipts of what was forgotten, the audit log, and whether the ledger is whole."""

from memplane.doors.http.console import links
from memplane.doors.http.console.views import Row, space_of, space_page
from memplane.doors.http.endpoint import Call, Query, Response
from memplane.errors import NotFound
from memplane.identity.principal import Right

_RECORDS_SHOWN = 200


def receipts(call: Call) -> Response:
    space = space_of(call)
    return space_page(call, "receipts.html", "receipts", space, receipts=space.receipts()[::-1])


def receipt(call: Call) -> Response:
    """One on a page of its own, to be printed or kept."""
    space = space_of(call)
    wanted = links.owner_of(call.path["receipt"])
    found = next((given for given in space.receipts() if given.id == wanted), None)
    if found is None:
        raise NotFound("receipt", wanted)
    return space_page(call, "receipt.html", "receipts", space, receipt=found)


def audit(call: Call) -> Response:
    space = space_of(call)
    return space_page(
        call,
        "audit.html",
        "audit",
        space,
        records=space.audit(limit=_RECORDS_SHOWN),
        verification=space.verify() if call.query["verify"] else None,
    )


def rows() -> list[Row]:
    return [
        ("GET", "/space/{space}/receipts", receipts, Right.READ, ()),
        ("GET", "/space/{space}/receipts/{receipt}", receipt, Right.READ, ()),
        ("GET", "/space/{space}/audit", audit, Right.READ, (Query(name="verify", default=""),)),
    ]
