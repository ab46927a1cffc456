"""Log in with a username and password, for clients without a token. They get a token for twelve hours."""

import hashlib
import hmac

from starlette.responses import Response

from memplane.adapters.helmdeck.wire import BadBody, LoggedIn, Login, read_body, seconds
from memplane.auth.claims import TokenClaims
from memplane.auth.identity import Identity
from memplane.auth.principal import Authenticator
from memplane.clock import to_datetime
from memplane.config import Settings
from memplane.errors import SettingsInvalid
from memplane.server.endpoint import HttpCall
from memplane.server.errors import HttpError
from memplane.server.responses import json_response

TOKEN_SECONDS = 12 * 3_600
_AIM = "login"
_BODY_BYTES_MAX = 64 << 10
"""A username and a password. The endpoint needs no credential, so the size is limited."""


class LogIn:
    """A single administrator, configured by settings. Failed logins count toward the same limit as failed keys."""

    def __init__(self, authenticator: Authenticator | None, settings: Settings) -> None:
        self._open = authenticator is None
        self._identity = authenticator if isinstance(authenticator, Identity) else None
        self._name = settings.admin_name
        self._password = settings.admin_password

    def __call__(self, call: HttpCall) -> Response:
        if self._open:
            raise HttpError(503, "auth_disabled", "authentication is disabled; no log-in is needed")
        if self._identity is None or not self._password:
            raise HttpError(503, "login_disabled", "no password is set; see the setting `admin_password`")
        if len(call.raw) > _BODY_BYTES_MAX:
            raise HttpError(413, "too_large", f"a log-in request may have at most {_BODY_BYTES_MAX:,} bytes")
        asked = _read(call.raw)
        if not asked.username or not asked.password:
            raise HttpError(400, "missing_credentials", "username and password are required")
        self._identity.guesses.check(call.peer, _AIM)
        right = _same(asked.username, self._name) & _same(asked.password, self._password)
        if not right:
            self._identity.guesses.missed(call.peer, _AIM)
            raise HttpError(401, "invalid_credentials", "wrong username or password")
        try:
            token, until = self._identity.mint_token(
                TokenClaims(sub=self._name, client="ui", scopes=["admin"]), ttl_s=TOKEN_SECONDS
            )
        except SettingsInvalid as exc:
            raise HttpError(
                503, "login_disabled", "no secret for signing tokens; see the setting `jwt_secret`"
            ) from exc
        answer = LoggedIn(token=token.reveal(), subject=self._name, expires_at=seconds(to_datetime(until)))
        return json_response(answer, newline=True)


def _read(raw: bytes) -> Login:
    try:
        return read_body(raw, Login)
    except BadBody as exc:
        raise HttpError(400, "invalid_json", str(exc)) from exc


def _same(given: str, wanted: str) -> bool:
    """Compare in constant time, for texts of any length."""
    return hmac.compare_digest(
        *(hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in (given, wanted))
    )
