"""Keys of the tenant: which there are, a new one, the end of one."""

from datetime import timedelta

from memplane.clock import to_datetime
from memplane.doors.http.console.forms import Form
from memplane.doors.http.console.links import ROOT
from memplane.doors.http.console.pages import page, redirect
from memplane.doors.http.console.views import Row
from memplane.doors.http.endpoint import Call, Response
from memplane.errors import InvalidRequest
from memplane.identity.identity import Identity
from memplane.identity.keys import Grant, KeyUnknown
from memplane.identity.principal import DOORS, Authenticator, Right
from memplane.storage.credentials import KeyRecord


class Keys:
    """For who may administer. A key shows its secret once, on the page that made it."""

    def __init__(self, authenticator: Authenticator | None) -> None:
        self._identity = authenticator if isinstance(authenticator, Identity) else None

    def show(self, call: Call) -> Response:
        return self._page(call)

    def create(self, call: Call) -> Response:
        form = Form(call)
        if self._identity is None:
            return self._page(call)
        days = form.given("days")
        if days is not None and not days.isdecimal():
            raise InvalidRequest("days: give a number of days, or leave it empty", field="days")
        spaces = [name.strip() for name in form.text("spaces").splitlines() if name.strip()]
        grant = Grant(
            name=form.text("name").strip(),
            tenant=call.principal.tenant,
            spaces=spaces or None,
            doors=[door for door in sorted(DOORS) if form.checked(f"door-{door}")] or None,
            rights=[right for right in Right if form.checked(right)] or [Right.READ],
            ttl=None if days is None else timedelta(days=int(days)),
        )
        minted = self._identity.create_key(grant)
        return self._page(call, secret=minted.bearer.reveal())

    def revoke(self, call: Call) -> Response:
        form = Form(call)
        wanted = form.text("id")
        if self._identity is not None:
            if wanted not in {record.id for record in self._listed(call)}:
                raise KeyUnknown(wanted)
            self._identity.revoke(wanted)
        return redirect(call, f"{ROOT}/keys")

    def _listed(self, call: Call) -> list[KeyRecord]:
        if self._identity is None:
            return []
        return [record for record in self._identity.list_keys() if record.tenant == call.principal.tenant]

    def _page(self, call: Call, *, secret: str = "") -> Response:
        shown = [
            {
                "record": record,
                "created": to_datetime(record.created),
                "used": None if record.used is None else to_datetime(record.used),
                "expires": None if record.expires is None else to_datetime(record.expires),
            }
            for record in self._listed(call)
        ]
        return page(
            call,
            "keys.html",
            keys=shown,
            secret=secret,
            doors=sorted(DOORS),
            rights=list(Right),
            asked=self._identity is not None,
        )


def rows(
    authenticator: Authenticator | None,
) -> list[Row]:
    keys = Keys(authenticator)
    return [
        ("GET", "/keys", keys.show, Right.ADMIN, ()),
        ("POST", "/keys", keys.create, Right.ADMIN, ()),
        ("POST", "/keys/revoke", keys.revoke, Right.ADMIN, ()),
    ]
