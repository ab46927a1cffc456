"""Sign in with an API key or a one-time link, and sign out."""

from datetime import timedelta

from starlette.responses import Response

from memplane.auth.identity import Identity
from memplane.auth.principal import Authenticator, Forbidden, Principal, Right, Unauthenticated
from memplane.console import links
from memplane.console.cookies import set_cookie
from memplane.console.forms import Form
from memplane.console.pages import HEADERS, SESSION_SECONDS, page, redirect, rendered
from memplane.server.endpoint import HttpCall

ADAPTER = "console"
SESSION = timedelta(seconds=SESSION_SECONDS)


class SignIn:
    """Creates and ends sessions. A session has its own key, which is revoked with the key that created it."""

    def __init__(self, authenticator: Authenticator | None) -> None:
        self._identity = authenticator if isinstance(authenticator, Identity) else None

    @property
    def required(self) -> bool:
        """Whether authentication is enabled."""
        return self._identity is not None

    def show(self, call: HttpCall) -> Response:
        if self._identity is None:
            return redirect(call, links.ROOT)
        return page(call, "sign_in.html", problem="", to=links.safe_redirect(call.query["to"]))

    def enter_with_key(self, call: HttpCall) -> Response:
        form = Form(call)
        to = links.safe_redirect(form.text("to"))
        try:
            return self._enter(call, form.text("key").strip(), once=False, to=to)
        except (Unauthenticated, Forbidden) as exc:
            return page(call, "sign_in.html", problem=str(exc), status=401, to=to)

    def enter_with_link(self, call: HttpCall) -> Response:
        try:
            return self._enter(call, call.query["ticket"], once=True)
        except (Unauthenticated, Forbidden):
            problem = (
                "the link was already used or has expired; sign in with a key, or run `memplane console`"
            )
            return page(call, "sign_in.html", problem=problem, status=401, to=links.ROOT)

    def leave(self, call: HttpCall) -> Response:
        Form(call)
        if self._identity is not None and call.principal.credential:
            self._identity.revoke(call.principal.credential)
        return redirect(
            call, links.SIGN_IN, **{"set-cookie": set_cookie("", seconds=0, headers=call.headers)}
        )

    def _enter(self, call: HttpCall, credential: str, *, once: bool, to: str = links.ROOT) -> Response:
        if self._identity is None:
            return redirect(call, to)
        principal = self._identity.authenticate(credential, peer=call.peer)
        principal.check(Right.READ, adapter=ADAPTER)
        minted = self._identity.sign_in(
            _session_grant(principal) if once else principal,
            adapter=ADAPTER,
            ttl=SESSION,
            once=f"console link {principal.credential}" if once else None,
        )
        if minted is None:
            raise Unauthenticated("the link was already used")
        cookie = set_cookie(minted.bearer.reveal(), seconds=SESSION_SECONDS, headers=call.headers)
        # Return a page that forwards, not a redirect: after a redirect from another site, the browser would not send
        # the cookie.
        return rendered("entered.html", status=200, headers=HEADERS | {"set-cookie": cookie}, to=to)


def _session_grant(principal: Principal) -> Principal:
    """A session from a link outlives the link, so it does not depend on the link's key."""
    return Principal(
        tenant=principal.tenant, subject=principal.subject, spaces=principal.spaces, rights=principal.rights
    )
