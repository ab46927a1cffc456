"""The cookie of a session, and the word a form must know to be believed.

The cookie holds the credential of the session, which no script can read and no other site can send. A form carries a
word that follows from it: a page of another site can send a form, but cannot know the word.
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
    """What the browser keeps for us; empty where it keeps nothing."""
    try:
        kept = SimpleCookie(headers.get("cookie", "")).get(NAME)
    except CookieError:
        return ""
    return "" if kept is None else kept.value


def credential_of(headers: Mapping[str, str]) -> str:
    """The credential of a session. Raises `Unauthenticated` where there is none."""
    credential = cookie_of(headers)
    if not credential:
        raise MissingCredential("sign in first")
    if len(credential) > CREDENTIAL_CHARS_MAX:
        raise Unauthenticated("the credential is not valid")
    return credential


def fresh() -> str:
    """For a browser that keeps nothing yet, where nobody is asked for a credential."""
    return secrets.token_urlsafe(24)


def set_cookie(value: str, *, seconds: int, headers: Mapping[str, str]) -> str:
    """The header that has the browser keep it; with no seconds, drop it."""
    secure = "; Secure" if headers.get("x-forwarded-proto", "") == "https" else ""
    return f"{NAME}={value}; Path={PATH}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def csrf_token(cookie: str) -> str:
    return blake2b(cookie.encode("utf-8", "replace"), digest_size=16, person=_PERSON).hexdigest()


def check_csrf(headers: Mapping[str, str], given: str) -> None:
    """Raise unless whoever sent this saw a page of the same session."""
    cookie = cookie_of(headers)
    if not cookie or not hmac.compare_digest(csrf_token(cookie).encode(), given.encode("utf-8", "replace")):
        raise HttpError(403, "stale_page", "this page is from another session; load it again and repeat")
