"""What needs a person: memories that cannot both be so, what compaction proposes, and what is flagged. One key decides
each."""

from memplane.doors.http.console import links
from memplane.doors.http.console.forms import Form
from memplane.doors.http.console.pages import redirect
from memplane.doors.http.console.views import Row, space_of, space_page, writable_space
from memplane.doors.http.endpoint import Call, Response
from memplane.identity.principal import Right
from memplane.storage.compaction import Standing

TAB = "inbox"

_SHOWN = 50
"""Of each sort; others come up as these are decided."""


def show(call: Call) -> Response:
    space = space_of(call)
    drafts = [learning for learning in space.learnings() if learning.standing is Standing.OPEN]
    return space_page(
        call,
        "inbox.html",
        TAB,
        space,
        conflicts=space.conflicts(limit=_SHOWN),
        drafts=drafts[:_SHOWN],
        shown=_SHOWN,
        suspects=space.quarantine(limit=_SHOWN),
        waiting=space.quarantine_count(),
    )


def resolve(call: Call) -> Response:
    form, space = Form(call), writable_space(call)
    space.resolve(form.text("winner"))
    return redirect(call, links.space_link(space.owner, TAB))


def decide(call: Call) -> Response:
    form, space = Form(call), writable_space(call)
    settle = space.confirm if form.text("verdict") == "confirm" else space.reject
    settle(form.text("learning"))
    return redirect(call, links.space_link(space.owner, TAB))


def rule(call: Call) -> Response:
    """What is flagged is told as any other from now on, or is forgotten, with all that was read out of it."""
    form, space = Form(call), writable_space(call)
    if form.text("verdict") == "release":
        space.release(form.text("entry"))
    else:
        space.forget_suspects([form.text("entry")])
    return redirect(call, links.space_link(space.owner, TAB))


def rows() -> list[Row]:
    return [
        ("GET", "/space/{space}/inbox", show, Right.READ, ()),
        ("POST", "/space/{space}/inbox/resolve", resolve, Right.WRITE, ()),
        ("POST", "/space/{space}/inbox/decide", decide, Right.WRITE, ()),
        ("POST", "/space/{space}/inbox/rule", rule, Right.WRITE, ()),
    ]
