"""Header forwarding: hop-by-hop headers and Memplane's own are removed."""

import base64
import binascii
from collections.abc import Iterable, Mapping

import msgspec
from multidict import CIMultiDict

from memplane.adapters.clawdapus.outcome import RecallOutcome
from memplane.adapters.proxy.credentials import is_credential_header
from memplane.safety.outgoing import ServiceBlock

# Response headers about memory: the recall status always, and the blocks on request.


RECALL_HEADER = "x-memplane-recall"
"""`succeeded; blocks=2; bytes=310`. `show` in a request asks for the blocks."""
RECALLED_HEADER = "x-memplane-told"
SHOW = "show"

_BYTES_MAX = 32 * 1024
"""The header's size limit; clients accept no line longer than 64 KiB."""


class InjectedBlocks(msgspec.Struct, frozen=True):
    """The blocks that were injected into the prompt."""

    memories: tuple[ServiceBlock, ...] = ()


_SHOWN = msgspec.json.Decoder(InjectedBlocks)


def summary_of(recalled: RecallOutcome) -> str:
    size = len(recalled.text.encode("utf-8", "replace"))
    return f"{recalled.status.value}; blocks={len(recalled.blocks)}; bytes={size}"


def encode_blocks(recalled: RecallOutcome) -> str:
    """JSON in base64, because headers are ASCII. Only the first blocks if all of them are too long."""
    for count in range(len(recalled.blocks), -1, -1):
        spelled = base64.b64encode(msgspec.json.encode(InjectedBlocks(recalled.blocks[:count])))
        if len(spelled) <= _BYTES_MAX:
            break
    return spelled.decode("ascii")


def read_blocks(header: str | None) -> tuple[ServiceBlock, ...]:
    """None if the header is absent or unreadable."""
    try:
        return _SHOWN.decode(base64.b64decode(header or "", validate=True)).memories
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return ()


_ONE_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
    }
)
_REGENERATED = frozenset({"host", "content-length", "expect"})
_OURS = frozenset({"cookie", "forwarded", "via", "x-real-ip"})
"""Headers for this server, from a browser or from a proxy in front of it."""
_OUR_PREFIXES = ("x-memplane-", "x-forwarded-")
_NOT_BACK = frozenset(
    {
        "date",
        "server",
        "set-cookie",
        "alt-svc",
        "strict-transport-security",
        RECALL_HEADER,
        RECALLED_HEADER,
    }
)
"""Response headers that would apply to this server's own origin."""
READABLE = frozenset({"gzip", "deflate", "identity", "x-gzip", ""})
"""Content encodings that the proxy can decode, in addition to relaying them."""


def to_upstream(
    headers: Iterable[tuple[bytes, bytes]],
    *,
    provider_keys: frozenset[str],
    own_key: Mapping[str, str],
    readable: bool,
) -> CIMultiDict[str]:
    """The client's headers for the provider. With `readable`, only decodable encodings are offered."""
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
    dropped = (
        _ONE_HOP | _REGENERATED | _OURS | _listed(value for name, value in pairs if name == "connection")
    )
    sent: CIMultiDict[str] = CIMultiDict()
    for name, value in pairs:
        if name in dropped or name.startswith(_OUR_PREFIXES):
            continue
        if is_credential_header(name) and (name not in provider_keys or name in sent):
            continue  # only the first of several was checked
        if name == "accept-encoding" and readable:
            sent.add(name, _readable(value))
            continue
        sent.add(name, value)
    if not provider_keys:
        sent.update(own_key)
    return sent


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The provider's headers for the client."""
    pairs = [(name.lower(), value) for name, value in headers]
    dropped = _ONE_HOP | _NOT_BACK
    dropped |= _listed(value.decode("latin-1") for name, value in pairs if name == b"connection")
    return [(name, value) for name, value in pairs if name.decode("latin-1") not in dropped]


def _listed(values: Iterable[str]) -> frozenset[str]:
    return frozenset(part.strip().lower() for value in values for part in value.split(","))


def _readable(value: str) -> str:
    kept = [part for part in value.split(",") if part.partition(";")[0].strip().lower() in READABLE]
    return ",".join(kept).strip() or "identity"
