"""Receipts of forgotten memories, the audit log, and ledger verification."""

from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console import links
from memplane.console.views import Row, space_of, space_page
from memplane.server.endpoint import HttpCall, Query

_RECORDS_LISTED = 200
_RECEIPTS_LISTED = 50


def receipts(call: HttpCall) -> Response:
    space = space_of(call)
    number = max(1, call.query["page"])
    found = space.ledger.newest_receipts(limit=_RECEIPTS_LISTED + 1, offset=(number - 1) * _RECEIPTS_LISTED)
    return space_page(
        call,
        "receipts.html",
        "receipts",
        space,
        receipts=found[:_RECEIPTS_LISTED],
        number=number,
        more=len(found) > _RECEIPTS_LISTED,
    )


def receipt(call: HttpCall) -> Response:
    """Show one receipt on its own page, to print or save."""
    space = space_of(call)
    found = space.ledger.receipt(links.owner_of(call.path_params["receipt"]))
    return space_page(call, "receipt.html", "receipts", space, receipt=found)


def audit(call: HttpCall) -> Response:
    space = space_of(call)
    return space_page(
        call,
        "audit.html",
        "audit",
        space,
        records=space.ledger.audit(limit=_RECORDS_LISTED),
        verification=space.ledger.verify() if call.query["verify"] else None,
    )


def rows() -> list[Row]:
    return [
        (
            "GET",
            "/space/{space}/receipts",
            receipts,
            Right.READ,
            (Query(name="page", type=int, default=1),),
        ),
        ("GET", "/space/{space}/receipts/{receipt}", receipt, Right.READ, ()),
        ("GET", "/space/{space}/audit", audit, Right.READ, (Query(name="verify", default=""),)),
    ]
