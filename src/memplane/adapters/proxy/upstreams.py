"""The upstream of a request: the default provider, or the one that the path or the model name selects."""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from memplane.adapters.proxy.apis import ChatRequest
from memplane.adapters.proxy.errors import is_anthropic
from memplane.config import Settings
from memplane.errors import SettingsInvalid
from memplane.server.errors import HttpError

Kind = Literal["openai", "anthropic", "azure"]

OPENAI, ANTHROPIC = "openai", "anthropic"
_KINDS: tuple[Kind, ...] = ("openai", "anthropic", "azure")
_VERSION = "/v1"


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """A provider, or a server with a compatible API."""

    name: str
    url: str
    """Without a trailing slash."""
    kind: Kind
    key: str | None = None

    def __repr__(self) -> str:
        return f"Upstream({self.name!r}, {self.url!r})"

    def address(self, path: str, query: str) -> str:
        """Map a path of the proxy to the upstream. OpenAI base URLs include the version and Anthropic's do not. A
        base URL without a path is the server root."""
        base = self.url
        if path.startswith(f"{_VERSION}/") and (
            base.endswith(_VERSION) or (self.kind == OPENAI and urlsplit(base).path not in {"", "/"})
        ):
            path = path.removeprefix(_VERSION)
        return f"{base}{path}{'?' + query if query else ''}"

    def credential(self, *, speaks_anthropic: bool) -> dict[str, str]:
        """The header with the server's key."""
        if self.key is None:
            return {}
        if self.kind == "azure":
            return {"api-key": self.key}
        return {"x-api-key": self.key} if speaks_anthropic else {"authorization": f"Bearer {self.key}"}


class Upstreams:
    """All configured upstreams. Raises `SettingsInvalid` for an unusable one."""

    def __init__(self, settings: Settings) -> None:
        keys = dict(_pair(text, "upstream_keys") for text in settings.upstream_keys)
        self._named = {
            OPENAI: _upstream(OPENAI, settings.openai_base_url, settings.openai_api_key),
            ANTHROPIC: _upstream(
                ANTHROPIC, f"anthropic+{settings.anthropic_base_url}", settings.anthropic_api_key
            ),
        }
        for text in settings.upstreams:
            name, url = _pair(text, "upstreams")
            self._named[name] = _upstream(name, url, keys.pop(name, None))
        if keys:
            raise SettingsInvalid(
                f"upstream_keys: no upstream is named {', '.join(sorted(keys))}; see the setting `upstreams`"
            )

    def named(self, name: str) -> Upstream:
        """The upstream that the path names."""
        found = self._named.get(name)
        if found is None:
            raise HttpError(404, "unknown_upstream", "no upstream has this name; see the setting `upstreams`")
        return found

    def chosen(
        self, path: str, headers: Mapping[str, str], chat_request: ChatRequest | None
    ) -> tuple[Upstream, str | None]:
        """The upstream of a request, and the model name there if it differs: `vllm/llama` is `llama` at `vllm`. A
        prefix that is not an upstream's name belongs to the model name."""
        prefix, slash, model = ("" if chat_request is None else chat_request.model).partition("/")
        if slash and model and prefix in self._named:
            return self._named[prefix], model
        return self._named[ANTHROPIC if is_anthropic(path, headers) else OPENAI], None


def _upstream(name: str, url: str, key: str | None) -> Upstream:
    kind, plus, address = url.partition("+")
    if not plus or "/" in kind or ":" in kind:
        kind, address = OPENAI, url
    found = next((known for known in _KINDS if known == kind), None)
    parts = urlsplit(address)
    if found is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsInvalid(
            f"upstreams: {name} has no valid URL; use one such as http://127.0.0.1:8000/v1, "
            "with the prefix anthropic+ or azure+ for those APIs"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise SettingsInvalid(f"upstreams: the URL of {name} must not contain a user, query or fragment")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise SettingsInvalid(
            f"upstreams: the key of {name} contains characters that are not allowed in a header"
        )
    return Upstream(name=name, url=address.rstrip("/"), kind=found, key=key or None)


def _pair(text: str, setting: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip() or "/" in name:
        raise SettingsInvalid(f"{setting}: use name=value, separated by commas")
    return name.strip(), value.strip()
