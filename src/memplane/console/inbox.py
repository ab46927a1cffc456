"""The inbox: conflicts, compaction drafts and quarantined entries. One key decides each."""

import re

from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console import links
from memplane.console.forms import Form
from memplane.console.pages import redirect
from memplane.console.views import Row, space_of, space_page, writable_space
from memplane.server.endpoint import HttpCall, Query
from memplane.space import Space
from memplane.storage.compaction import LearningStatus

TAB = "inbox"

_LISTED_MAX = 50
"""Rows shown of each type; more appear as these are decided."""
_HAPPENED = {
    "settled": "Conflict resolved: the other memory is superseded.",
    "confirmed": "Draft confirmed.",
    "rejected": "Draft rejected.",
    "released": "Released: recall treats it normally.",
    "forgotten": "Forgotten permanently.",
}
"""Messages about the previous decision. The URL contains only the code, so a link cannot inject other text."""
_PLACE = re.compile(r"[0-9]{1,3}", re.ASCII)
_LISTING = (Query(name="told", default=""), Query(name="at", default=""))


def show(call: HttpCall) -> Response:
    space = space_of(call)
    drafts = [learning for learning in space.review.drafts() if learning.standing is LearningStatus.OPEN][
        :_LISTED_MAX
    ]
    conflicts, suspects = (
        space.review.conflicts(limit=_LISTED_MAX),
        space.review.quarantine(limit=_LISTED_MAX),
    )
    rows = len(conflicts) + len(drafts) + len(suspects)
    happened = _HAPPENED.get(call.query["told"], "")
    return space_page(
        call,
        "inbox.html",
        TAB,
        space,
        conflicts=conflicts,
        drafts=drafts,
        shown=_LISTED_MAX,
        suspects=suspects,
        waiting=space.review.quarantine_count(),
        rows=rows,
        marked=_marked(call.query["at"], rows),
        happened=f"{happened} Inbox is empty." if happened and not rows else happened,
    )


def _marked(at: str, rows: int) -> int | None:
    """Return the row to select: the one that moved to the position of the decided row."""
    return min(int(at), rows - 1) if rows and _PLACE.fullmatch(at) else None


def resolve(call: HttpCall) -> Response:
    form, space = Form(call), writable_space(call)
    space.review.resolve(form.text("winner"))
    return _decided(call, form, space, "settled")


def decide(call: HttpCall) -> Response:
    form, space = Form(call), writable_space(call)
    confirmed = form.text("verdict") == "confirm"
    settle = space.review.confirm if confirmed else space.review.reject
    settle(form.text("learning"))
    return _decided(call, form, space, "confirmed" if confirmed else "rejected")


def rule(call: HttpCall) -> Response:
    """Release a quarantined entry, or forget it with everything derived from it."""
    form, space = Form(call), writable_space(call)
    if form.text("verdict") == "release":
        space.review.release(form.text("entry"))
        return _decided(call, form, space, "released")
    space.review.forget_quarantined([form.text("entry")])
    return _decided(call, form, space, "forgotten")


def _decided(call: HttpCall, form: Form, space: Space, told: str) -> Response:
    """Redirect to the next row and show the result of the decision."""
    at = form.text("at")
    return redirect(
        call, links.space_link(space.owner, TAB, told=told, at=at if _PLACE.fullmatch(at) else "")
    )


def rows() -> list[Row]:
    return [
        ("GET", "/space/{space}/inbox", show, Right.READ, _LISTING),
        ("POST", "/space/{space}/inbox/resolve", resolve, Right.WRITE, ()),
        ("POST", "/space/{space}/inbox/decide", decide, Right.WRITE, ()),
        ("POST", "/space/{space}/inbox/rule", rule, Right.WRITE, ()),
    ]
