"""Keys of the tenant: which there are, a new one, the end of one."""

import re
from collections.abc import Callable
from datetime import timedelta
from secrets import token_hex

from starlette.responses import Response

from memplane.auth.identity import Identity
from memplane.auth.keys import Grant, KeyUnknown
from memplane.auth.principal import ADAPTERS, Authenticator, Right
from memplane.clock import to_datetime
from memplane.console.forms import Form
from memplane.console.links import ROOT
from memplane.console.pages import page, plain, redirect
from memplane.console.views import Row
from memplane.errors import InvalidRequest
from memplane.server.endpoint import HttpCall
from memplane.storage.catalog.credentials import KeyRecord

_ONCE_BYTES = 16
_ONCE = re.compile(r"[0-9a-f]{32}", re.ASCII)


class Keys:
    """For who may administer. A key shows its secret once, in the answer to the form that made it, and it is kept nowhere:
    the form carries a word that makes one key, however often it is sent. So nothing has to be remembered between two
    requests, which two processes may answer."""

    def __init__(self, authenticator: Authenticator | None) -> None:
        self._identity = authenticator if isinstance(authenticator, Identity) else None

    def show(self, call: HttpCall) -> Response:
        return self._page(call)

    def create(self, call: HttpCall) -> Response:
        form = Form(call)
        if self._identity is None:
            return self._page(call)
        once = form.text("once")
        if not _ONCE.fullmatch(once):
            raise InvalidRequest("once: this form is not of our page; load it again", field="once")
        days = form.value("days")
        if days is not None and not days.isdecimal():
            raise InvalidRequest("days: give a number of days, or leave it empty", field="days")
        spaces = [name.strip() for name in form.text("spaces").splitlines() if name.strip()]
        grant = Grant(
            name=form.text("name").strip(),
            tenant=call.principal.tenant,
            spaces=spaces or None,
            adapters=[adapter for adapter in sorted(ADAPTERS) if form.checked(f"door-{adapter}")] or None,
            rights=[right for right in Right if form.checked(right)] or [Right.READ],
            ttl=None if days is None else timedelta(days=int(days)),
        )
        minted = self._identity.create_key_once(grant, f"{call.principal.tenant} {once}")
        return self._page(call, secret="" if minted is None else minted.bearer.reveal(), again=minted is None)

    def revoke(self, call: HttpCall) -> Response:
        form = Form(call)
        wanted = form.text("id")
        if self._identity is not None:
            if wanted not in {record.id for record in self._listed(call)}:
                raise KeyUnknown(wanted)
            self._identity.revoke(wanted)
        return redirect(call, f"{ROOT}/keys")

    def _listed(self, call: HttpCall) -> list[KeyRecord]:
        if self._identity is None:
            return []
        return [record for record in self._identity.list_keys() if record.tenant == call.principal.tenant]

    def _question(self, call: HttpCall) -> Callable[[KeyRecord], str]:
        """What is asked before a key ends: which one it is, and what ends with it."""
        last = own = None
        if self._identity is not None:
            last = self._identity.only_admin(call.principal.tenant, adapter=call.endpoint.adapter)
            own = self._identity.parent_of(call.principal.credential)

        def question(record: KeyRecord) -> str:
            asked = [f"End the key “{plain(record.name)}” ({record.id}) for good?"]
            if record.id == last:
                asked.append(
                    "It is the last one that may administer: after it, that needs `memplane console` on the machine that serves."
                )
            if record.id == own:
                asked.append("You are signed in with it, and will be signed out.")
            return " ".join(asked)

        return question

    def _page(self, call: HttpCall, *, secret: str = "", again: bool = False) -> Response:
        question = self._question(call)
        shown = [
            {
                "record": record,
                "question": question(record),
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
            again=again,
            once=token_hex(_ONCE_BYTES),
            adapters=sorted(ADAPTERS),
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
