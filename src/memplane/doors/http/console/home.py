"""The first page: every space that may be seen, and what needs a person."""

from memplane.doors.http.console.pages import page
from memplane.doors.http.console.signing import DOOR, Signing
from memplane.doors.http.console.views import Row, space_of, space_page
from memplane.doors.http.endpoint import Call, Response
from memplane.engine import Engine
from memplane.identity.principal import Right

_SPACES_SHOWN_MAX = 200


class Home:
    """Spaces at a glance."""

    def __init__(self, plane: Engine, signing: Signing) -> None:
        self._plane = plane
        self._signing = signing

    def show(self, call: Call) -> Response:
        principal = call.principal
        owners = [
            owner
            for owner in self._plane.spaces(principal.tenant)
            if principal.allows(Right.READ, door=DOOR, space=owner)
        ]
        spaces = [
            {"owner": owner, "sizes": call.space(owner).stats(), "lag": call.space(owner).lag()}
            for owner in owners[:_SPACES_SHOWN_MAX]
        ]
        return page(
            call,
            "home.html",
            spaces=spaces,
            more=max(0, len(owners) - _SPACES_SHOWN_MAX),
            readiness=self._plane.readiness(),
            subject=principal.subject,
            signed_in=self._signing.asked,
        )

    def overview(self, call: Call) -> Response:
        space = space_of(call)
        return space_page(call, "overview.html", "", space, sizes=space.stats(), lag=space.lag())


def rows(plane: Engine, signing: Signing) -> list[Row]:
    home = Home(plane, signing)
    return [
        ("GET", "", home.show, Right.READ, ()),
        ("GET", "/space/{space}", home.overview, Right.READ, ()),
    ]
