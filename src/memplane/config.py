"""One frozen `Settings`, built where the program starts and passed down; nothing else reads the environment."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from memplane.errors import SettingsInvalid

DATA_DEFAULT = "~/.memplane"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. The names are those of docs/reference/settings.md."""

    data: str = DATA_DEFAULT
    """Where memory lives: a directory."""
    key: str | None = None
    """The encryption key, 64 hexadecimal digits; None leaves files plain."""

    embedding: str = "local"
    """What turns text into vectors: `local`, `openai` or `none`."""
    embedding_model: str | None = None
    """`local`: a folder with a model of your own; `openai`: the model's name."""
    embedding_url: str = "https://api.openai.com/v1"
    embedding_key: str | None = None
    embedding_dimension: int = 1_536
    """Of an `openai` model; a local one says it itself."""
    llm: str = "none"
    """What reads facts out of turns besides the rules: `none`, `openai` or `anthropic`."""
    llm_model: str | None = None
    llm_url: str = ""
    """Empty: the provider's own address."""
    llm_key: str | None = None
    catalog: str | None = None
    """A file with predicates of your own."""

    content_chars_max: int = 2_000
    tags_max: int = 10
    tag_chars_max: int = 50
    query_chars_max: int = 65_536
    entry_bytes_max: int = 8 * 1024 * 1024

    file_bytes_max: int = 256 * 1024
    """Of one file that an agent keeps."""
    files_max: int = 1_000

    session_stores_max: int = 20
    session_supersedes_max: int = 5
    session_deletes_max: int = 5

    brief_entries_max: int = 50
    brief_chars_max: int = 10_000
    recall_blocks_max: int = 8
    recall_chars_max: int = 8_000
    recall_turns_max: int = 6
    recall_tokens_max: int = 2_000
    recall_work_ms: int = 1_000
    """How long a recall may work off what waits for enrichment, where no worker does."""

    purge_superseded_days: int = 90
    wipe_now_bytes_max: int = 256 * 1024 * 1024
    """A larger space is not written anew at every forget; its receipts say `off_disk: false` until `wipe`."""
    redact_ledger: bool = False
    """Redact secrets before they reach the ledger. Off, the ledger keeps what was said and only what is derived
    from it is redacted; on, a wrongly redacted word is lost for good."""

    host: str = "127.0.0.1"
    """Where the server listens."""
    port: int = 8_700
    workers: int = 1
    """Server processes on the same data directory."""
    hosts: tuple[str, ...] = ()
    """Names besides loopback and addresses that the server answers to; `*` is any."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may call the server from a browser."""
    body_bytes_max: int = 32 * 1024 * 1024
    body_seconds_max: int = 60
    """How long a body may take to arrive."""

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        for secret in ("key", "embedding_key", "llm_key"):
            if shown[secret] is not None:
                shown[secret] = "…"
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


_ENVIRONMENT = {
    "MEMPLANE_DATA": "data",
    "MEMPLANE_REDACT_LEDGER": "redact_ledger",
    "MEMPLANE_PURGE_SUPERSEDED_DAYS": "purge_superseded_days",
    "MEMPLANE_BRIEF_ENTRIES_MAX": "brief_entries_max",
    "MEMPLANE_BRIEF_CHARS_MAX": "brief_chars_max",
    "MEMPLANE_EMBEDDING": "embedding",
    "MEMPLANE_EMBEDDING_MODEL": "embedding_model",
    "MEMPLANE_EMBEDDING_URL": "embedding_url",
    "MEMPLANE_EMBEDDING_KEY": "embedding_key",
    "MEMPLANE_EMBEDDING_DIMENSION": "embedding_dimension",
    "MEMPLANE_LLM": "llm",
    "MEMPLANE_LLM_MODEL": "llm_model",
    "MEMPLANE_LLM_URL": "llm_url",
    "MEMPLANE_LLM_KEY": "llm_key",
    "MEMPLANE_CATALOG": "catalog",
    "MEMPLANE_RECALL_TOKENS_MAX": "recall_tokens_max",
    "MEMPLANE_RECALL_WORK_MS": "recall_work_ms",
    "MEMPLANE_HOST": "host",
    "MEMPLANE_PORT": "port",
    "MEMPLANE_WORKERS": "workers",
    "MEMPLANE_HOSTS": "hosts",
    "MEMPLANE_ORIGINS": "origins",
    "MEMPLANE_BODY_BYTES_MAX": "body_bytes_max",
    "MEMPLANE_BODY_SECONDS_MAX": "body_seconds_max",
}

_LISTS = frozenset({"hosts", "origins"})
"""Settings that hold several values; their variables hold them with commas between."""


def settings_from(environment: Mapping[str, str]) -> Settings:
    values: dict[str, str | list[str]] = {}
    for variable, name in _ENVIRONMENT.items():
        if environment.get(variable):
            value = environment[variable]
            values[name] = [part.strip() for part in value.split(",")] if name in _LISTS else value
    key = _key_from(environment)
    if key is not None:
        values["key"] = key
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as exc:
        raise SettingsInvalid(f"a MEMPLANE_ environment variable cannot be used: {exc}") from exc


def _key_from(environment: Mapping[str, str]) -> str | None:
    if environment.get("MEMPLANE_KEY"):
        return environment["MEMPLANE_KEY"]
    file = environment.get("MEMPLANE_KEY_FILE")
    if not file:
        return None
    try:
        return Path(file).expanduser().read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsInvalid(f"MEMPLANE_KEY_FILE: {file} cannot be read: {exc}") from exc
