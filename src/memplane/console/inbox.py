"""What needs a person: memories that cannot both be so, what compaction proposes, and what is flagged. One key decides
each."""

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
"""Of each sort; others come up as these are decided."""
_HAPPENED = {
    "settled": "Settled: the other one is superseded.",
    "confirmed": "The draft is confirmed.",
    "rejected": "The draft is turned down.",
    "released": "Released: it is told as any other.",
    "forgotten": "Forgotten for good.",
}
"""What was decided on the page before, in words. An address holds the code alone: nobody makes this page say anything."""
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
        happened=f"{happened} Nothing else waits." if happened and not rows else happened,
    )


def _marked(at: str, rows: int) -> int | None:
    """Which row is next: the one that came to where the last decided one was."""
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
    """What is flagged is told as any other from now on, or is forgotten, with all that was read out of it."""
    form, space = Form(call), writable_space(call)
    if form.text("verdict") == "release":
        space.review.release(form.text("entry"))
        return _decided(call, form, space, "released")
    space.review.forget_quarantined([form.text("entry")])
    return _decided(call, form, space, "forgotten")


def _decided(call: HttpCall, form: Form, space: Space, told: str) -> Response:
    """To the next row, and what was decided is said there."""
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
