"""The keys page: list, create and revoke the tenant's API keys."""

import re
from collections.abc import Callable
from datetime import timedelta
from secrets import token_hex

from starlette.responses import Response

from memplane.auth.identity import Identity
from memplane.auth.keys import TTL_MAX, Grant, KeyUnknown
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
    """Requires the admin right. A new key's secret is shown once, in the response to the form, and not stored. The
    form carries a nonce, so sending it twice creates one key. No state is kept between requests, because different
    processes may handle them."""

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
            raise InvalidRequest("once: the form is not valid; reload the page", field="once")
        spaces = [name.strip() for name in form.text("spaces").splitlines() if name.strip()]
        grant = Grant(
            name=form.text("name").strip(),
            tenant=call.principal.tenant,
            spaces=spaces or None,
            adapters=[adapter for adapter in sorted(ADAPTERS) if form.checked(f"door-{adapter}")] or None,
            rights=[right for right in Right if form.checked(right)] or [Right.READ],
            ttl=_ttl(form.value("days")),
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
        """Return the confirmation text: the key's name and the effects of revoking it."""
        last = own = None
        if self._identity is not None:
            last = self._identity.only_admin(call.principal.tenant, adapter=call.endpoint.adapter)
            own = self._identity.parent_of(call.principal.credential)

        def question(record: KeyRecord) -> str:
            asked = [f"Permanently revoke the key “{plain(record.name)}” ({record.id})?"]
            if record.id == last:
                asked.append(
                    "It is the last key with the admin right: afterwards, you need `memplane console` on the server."
                )
            if record.id == own:
                asked.append("You are signed in with this key and will be signed out.")
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


def _ttl(days: str | None) -> timedelta | None:
    if days is None:
        return None
    if not days.isdecimal() or len(days) > len(str(TTL_MAX.days)) or int(days) > TTL_MAX.days:
        raise InvalidRequest(f"days: must be a number of days up to {TTL_MAX.days:,}, or blank", field="days")
    return timedelta(days=int(days))
