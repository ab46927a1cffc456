"""Render pages from templates. All values are escaped, because memory content is untrusted."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import jinja2
from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console import links
from memplane.console.cookies import CSRF_FIELD, CSRF_HEADER, cookie_of, csrf_token, fresh, set_cookie
from memplane.server.endpoint import HttpCall
from memplane.space.timeline import line_of

HTML = "text/html; charset=utf-8"
SESSION_SECONDS = 12 * 3_600

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}

_PACKAGE = "memplane.console"
_STATIC_NAME = re.compile(r"[a-z0-9-]+(\.min)?\.(css|js|svg)")
_MEDIA = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOREVER = "public, max-age=31536000, immutable"
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control characters, direction marks and invisible characters: with them, a text could look like another. U+200C and
U+200D are allowed, because Persian and emoji need them."""


@cache
def environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "moment": moment,
        "day": day,
        "plain": plain,
        "line": line_of,
        "count": count,
        "named": links.named,
    }
    made.globals |= {"static": static_link, "space_link": links.space_link, "with_query": links.with_query}
    return made


def use_tabs(tabs: Sequence[tuple[str, str]]) -> None:
    """Set the navigation of a space: path and title of each page."""
    environment().globals["tabs"] = tabs


def page(call: HttpCall, template: str, *, status: int = 200, **values: Any) -> Response:
    """Render a page, or the fragment that htmx requested; templates check `partial`."""
    cookie = cookie_of(call.headers)
    headers = dict(HEADERS)
    if not cookie:
        cookie = fresh()
        headers["set-cookie"] = set_cookie(cookie, seconds=SESSION_SECONDS, headers=call.headers)
    return rendered(
        template,
        status=status,
        headers=headers,
        word=csrf_token(cookie),
        word_field=CSRF_FIELD,
        word_header=CSRF_HEADER,
        may_administer=call.endpoint.right is not None and Right.ADMIN in call.principal.rights,
        partial="hx-request" in call.headers and "hx-boosted" not in call.headers,
        **values,
    )


def rendered(template: str, *, status: int, headers: Mapping[str, str], **values: Any) -> Response:
    text = environment().get_template(template).render(**values)
    return Response(
        status_code=status, content=text.encode("utf-8", "replace"), media_type=HTML, headers=dict(headers)
    )


def redirect(call: HttpCall, to: str, **headers: str) -> Response:
    """Redirect to a page. htmx gets a header instead, because it would follow a redirect and insert the page into
    this one."""
    if "hx-request" in call.headers:
        return Response(status_code=204, headers={"hx-redirect": to, **headers})
    return Response(status_code=303, media_type=HTML, headers={"location": to, **headers})


def static(call: HttpCall) -> Response:
    """Return a static file. Its URL contains a version, so browsers may cache it."""
    found = _static(call.path_params["name"])
    if found is None:
        return rendered("refused.html", status=404, headers=HEADERS, status_shown=404, message="no such file")
    body, media = found
    return Response(content=body, media_type=media, headers={"cache-control": _FOREVER})


@cache
def static_link(name: str) -> str:
    found = _static(name)
    assert found is not None, name
    return f"{links.ROOT}/static/{name}?{sha256(found[0]).hexdigest()[:12]}"


@cache
def _static(name: str) -> tuple[bytes, str] | None:
    if not _STATIC_NAME.fullmatch(name):
        return None
    file = files(_PACKAGE).joinpath("static", name)
    return (file.read_bytes(), _MEDIA[name.rpartition(".")[2]]) if file.is_file() else None


def moment(at: datetime | None) -> str:
    """Format a time to the second in UTC, like the ledger."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"


def count(number: float) -> str:
    return f"{number:,}"


def plain(text: str) -> str:
    """Replace characters that disguise a text with their visible codes, because anyone may have written it."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)
