"""The routes of the console. Pages only render; every action is the engine call an API client makes."""

from memplane.auth.principal import Authenticator, Right
from memplane.console import (
    brief,
    budget,
    compare,
    documents,
    graph,
    home,
    inbox,
    keys,
    memories,
    pages,
    playground,
    records,
    sync,
    timeline,
)
from memplane.console.cookies import credential_of
from memplane.console.errors import FORMAT
from memplane.console.forms import MEDIA
from memplane.console.links import ROOT
from memplane.console.sign_in import ADAPTER, SignIn
from memplane.console.views import Row
from memplane.engine import Engine
from memplane.server.endpoint import Adapter, Endpoint, Handler, Query

TABS = (
    ("", "Overview"),
    ("timeline", "Timeline"),
    ("memories", "Memories"),
    ("recall", "Recall"),
    ("inbox", "Inbox"),
    ("graph", "Graph"),
    ("compare", "Compare"),
    ("documents", "Documents"),
    ("brief", "Brief"),
    ("budget", "Budget"),
    ("receipts", "Receipts"),
    ("audit", "Audit"),
    ("sync", "Sync"),
)
"""The pages of a space in the order of the navigation: path and title."""


def adapter(plane: Engine, authenticator: Authenticator | None) -> Adapter:
    pages.use_tabs(TABS)
    signing = SignIn(authenticator)
    rows: list[Row] = [
        ("GET", "/", lambda call: pages.redirect(call, ROOT), None, ()),
        ("GET", "/static/{name}", pages.static, None, ()),
        ("GET", "/sign-in", signing.show, None, (Query(name="to", default=""),)),
        ("POST", "/sign-in", signing.enter_with_key, None, ()),
        ("GET", "/enter", signing.enter_with_link, None, (Query(name="ticket", default=""),)),
        ("POST", "/sign-out", signing.leave, Right.READ, ()),
        *home.rows(plane, signing),
        *memories.rows(),
        *playground.rows(),
        *timeline.rows(),
        *inbox.rows(),
        *documents.rows(),
        *brief.rows(),
        *budget.rows(),
        *records.rows(),
        *graph.rows(),
        *compare.rows(),
        *sync.rows(),
        *keys.rows(authenticator),
    ]
    return Adapter(
        name=ADAPTER,
        title="Console",
        routes=(*(_endpoint(*row) for row in rows), timeline.stream(plane)),
        paths=(ROOT, f"{ROOT}/"),
        errors=FORMAT,
        hint="every page is below a space",
    )


def _endpoint(
    method: str, path: str, handle: Handler, right: Right | None, query: tuple[Query, ...]
) -> Endpoint:
    return Endpoint(
        method=method,
        path=ROOT + path,
        adapter=ADAPTER,
        summary="A page of the console",
        handle=handle,
        right=right,
        body=None if method == "GET" else bytes,
        body_required=False,
        media=(MEDIA,),
        answer_media=pages.HTML,
        query=query,
        credential=credential_of,
        described=False,
    )
