"""The description as a page. It is made here, of text alone: no script runs and nothing is fetched from anywhere."""

import html
from typing import Any

import msgspec

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",
}

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:#f3f4f6;padding:.75rem;overflow:auto;border-radius:6px}
summary{cursor:pointer;padding:.25rem 0}summary b{display:inline-block;min-width:4.5rem}h2{margin-top:2rem}
.muted{color:#59636e}a{color:#0550ae}
@media (prefers-color-scheme:dark){body{background:#15181c;color:#e6e8ea}pre{background:#22262b}.muted{color:#9aa4af}
a{color:#79b8ff}}
"""


def render(description: dict[str, Any]) -> str:
    """Calls by door, each with what it takes and answers."""
    title = f"{description['info']['title']} {description['info']['version']}"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<meta name=viewport content='width=device-width'><title>{_text(title)}</title><style>{_STYLE}</style>",
        f"<h1>{_text(title)}</h1>",
        "<p>Every call this server takes. Programs read <a href=openapi.json>openapi.json</a>. Send your key as ",
        "<code>Authorization: Bearer …</code> where a call needs one.</p>",
    ]
    for tag in description["tags"]:
        parts.extend(_door(tag["name"], description))
    parts.append("<h2>Shapes</h2>")
    parts.extend(
        f"<details id='{_text(name)}'><summary><code>{_text(name)}</code></summary>{_json(schema)}</details>"
        for name, schema in sorted(description["components"]["schemas"].items())
    )
    return "".join(parts) + "</html>\n"


def _door(name: str, description: dict[str, Any]) -> list[str]:
    parts = [f"<h2>{_text(name)}</h2>"]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            if name in operation["tags"]:
                parts.append(_operation(path, method, operation))
    for stream in description["x-streams"]:
        if stream["door"] == name:
            kind = "WS" if stream["websocket"] else "STREAM"
            parts.append(_line(kind, stream["path"], stream["summary"]))
    return parts


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    shown = {name: operation[name] for name in ("parameters", "requestBody") if operation.get(name)}
    answers = {
        status: answer
        for status, answer in operation["responses"].items()
        if int(status) < 400  # noqa: PLR2004 - what is not a refusal
    }
    key = "no key needed" if not operation["security"] else "needs a key"
    head = _line(method.upper(), path, f"{operation['summary']} ({key})")
    return f"<details><summary>{head}</summary>{_json(shown | {'responses': answers})}</details>"


def _line(kind: str, path: str, summary: str) -> str:
    return f"<b>{_text(kind)}</b> <code>{_text(path)}</code> <span class=muted>{_text(summary)}</span>"


def _json(value: Any) -> str:
    return f"<pre>{_text(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())}</pre>"


def _text(value: str) -> str:
    return html.escape(value)
