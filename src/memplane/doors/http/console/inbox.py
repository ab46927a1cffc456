"""What needs a person: memories that cannot both be so. One key decides each."""

from memplane.doors.http.console import links
from memplane.doors.http.console.forms import Form
from memplane.doors.http.console.pages import redirect
from memplane.doors.http.console.views import space_of, space_page, writable_space
from memplane.doors.http.endpoint import Call, Handle, Query, Response
from memplane.identity.principal import Right

TAB = "inbox"


def show(call: Call) -> Response:
    space = space_of(call)
    return space_page(call, "inbox.html", TAB, space, conflicts=space.conflicts())


def resolve(call: Call) -> Response:
    form, space = Form(call), writable_space(call)
    space.resolve(form.text("winner"))
    return redirect(call, links.space_link(space.owner, TAB))


def rows() -> list[tuple[str, str, Handle, Right | None, tuple[Query, ...]]]:
    return [
        ("GET", "/space/{space}/inbox", show, Right.READ, ()),
        ("POST", "/space/{space}/inbox/resolve", resolve, Right.WRITE, ()),
    ]
