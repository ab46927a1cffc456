"""The session cookie and the CSRF token of forms.

The cookie contains the session's credential. Scripts cannot read it, and other sites cannot send it. Each form
carries a token derived from the cookie: another site can submit a form, but cannot know the token.
"""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import blake2b
from http.cookies import CookieError, SimpleCookie

from memplane.auth.principal import CREDENTIAL_CHARS_MAX, Unauthenticated
from memplane.server.errors import HttpError
from memplane.server.guard import MissingCredential

NAME = "memplane_console"
PATH = "/console"
CSRF_FIELD = "_word"
CSRF_HEADER = "x-console-word"

_PERSON = b"console form"


def cookie_of(headers: Mapping[str, str]) -> str:
    """Return the value of the session cookie, or an empty string."""
    try:
        kept = SimpleCookie(headers.get("cookie", "")).get(NAME)
    except CookieError:
        return ""
    return "" if kept is None else kept.value


def credential_of(headers: Mapping[str, str]) -> str:
    """Return the session's credential. Raises `Unauthenticated` if there is none."""
    credential = cookie_of(headers)
    if not credential:
        raise MissingCredential("sign in first")
    if len(credential) > CREDENTIAL_CHARS_MAX:
        raise Unauthenticated("the credential is not valid")
    return credential


def fresh() -> str:
    """Return a new cookie value for a browser without one, when authentication is disabled."""
    return secrets.token_urlsafe(24)


def set_cookie(value: str, *, seconds: int, headers: Mapping[str, str]) -> str:
    """Return the `Set-Cookie` header value; zero seconds delete the cookie."""
    secure = "; Secure" if headers.get("x-forwarded-proto", "") == "https" else ""
    return f"{NAME}={value}; Path={PATH}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def csrf_token(cookie: str) -> str:
    return blake2b(cookie.encode("utf-8", "replace"), digest_size=16, person=_PERSON).hexdigest()


def check_csrf(headers: Mapping[str, str], given: str) -> None:
    """Raise unless the form was sent from a page of the same session."""
    cookie = cookie_of(headers)
    if not cookie or not hmac.compare_digest(csrf_token(cookie).encode(), given.encode("utf-8", "replace")):
        raise HttpError(403, "stale_page", "this page belongs to another session; reload it and try again")
