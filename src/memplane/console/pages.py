"""Pages from templates. Everything in them is escaped: what is remembered is data, whatever it looks like."""

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
"""Controls, marks that change the direction of what follows them, and those that nobody sees: a text with them could
pass for another. What joins letters (U+200C, U+200D) is not among them, since Persian and emoji need it."""


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
    """A whole page, or the part of it that htmx asked for: templates decide by `partial`."""
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
    """To another page; htmx is told in a header, since it would follow a redirect and show the page inside this one."""
    if "hx-request" in call.headers:
        return Response(status_code=204, headers={"hx-redirect": to, **headers})
    return Response(status_code=303, media_type=HTML, headers={"location": to, **headers})


def static(call: HttpCall) -> Response:
    """A file of ours. Its address says which version it is, so browsers may keep it."""
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
    """To the second, in UTC: console and ledger speak of the same moment."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"


def count(number: float) -> str:
    return f"{number:,}"


def plain(text: str) -> str:
    """What is not seen as what it is, where a person reads a text that anybody may have written."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)
