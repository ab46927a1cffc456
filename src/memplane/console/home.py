"""The first page: every accessible space, its health, and its items to review."""

import msgspec
from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console import drawing
from memplane.console.drawing import Sparkline
from memplane.console.pages import page
from memplane.console.sign_in import ADAPTER, SignIn
from memplane.console.views import Row, space_of, space_page
from memplane.engine import Engine
from memplane.server.endpoint import HttpCall, Query
from memplane.space import Space
from memplane.space.summary import ReviewNeed, SpaceSummary

_PAGE_SIZE = 15
_LISTING = (Query(name="q", default=""), Query(name="page", type=int, default=1))


class ConsoleLink(msgspec.Struct, frozen=True):
    """A console page where an item is reviewed, and the item's label."""

    page: str
    one: str
    many: str


LINKS: dict[ReviewNeed, ConsoleLink] = {
    ReviewNeed.CONFLICTS: ConsoleLink("inbox", "conflict", "conflicts"),
    ReviewNeed.DRAFTS: ConsoleLink("inbox", "draft", "drafts"),
    ReviewNeed.QUARANTINE: ConsoleLink("inbox", "in quarantine", "in quarantine"),
    ReviewNeed.DOCUMENTS: ConsoleLink("documents", "failed document", "failed documents"),
    ReviewNeed.DEAD_LETTERS: ConsoleLink("", "dead letter", "dead letters"),
}
"""Items without a page of their own are explained on the overview."""


class SpaceRow(msgspec.Struct, frozen=True):
    """A space as a row of the list."""

    glance: SpaceSummary
    spark: Sparkline


class Home:
    """The list of spaces and the overview of one space."""

    def __init__(self, plane: Engine, signing: SignIn) -> None:
        self._plane = plane
        self._signing = signing

    def show(self, call: HttpCall) -> Response:
        principal = call.principal
        words = call.query["q"].strip().casefold()
        owners = [
            owner
            for owner in self._plane.spaces(principal.tenant)
            if words in owner.casefold() and principal.allows(Right.READ, adapter=ADAPTER, space=owner)
        ]
        number = max(1, call.query["page"])
        first = (number - 1) * _PAGE_SIZE
        return page(
            call,
            "home.html",
            spaces=[_space_row(call.space(owner)) for owner in owners[first : first + _PAGE_SIZE]],
            total=len(owners),
            number=number,
            more=len(owners) > first + _PAGE_SIZE,
            q=call.query["q"],
            readiness=self._plane.readiness(),
            places=LINKS,
            subject=principal.subject,
            signed_in=self._signing.required,
        )

    def overview(self, call: HttpCall) -> Response:
        space = space_of(call)
        embedding = space.overview.embedding()
        return space_page(
            call, "overview.html", "", space, seen=_space_row(space), embedding=embedding, places=LINKS
        )


def _space_row(space: Space) -> SpaceRow:
    glance = space.overview.summary()
    return SpaceRow(glance, drawing.spark(glance.days, glance.first_day))


def rows(plane: Engine, signing: SignIn) -> list[Row]:
    home = Home(plane, signing)
    return [
        ("GET", "", home.show, Right.READ, _LISTING),
        ("GET", "/space/{space}", home.overview, Right.READ, ()),
    ]
