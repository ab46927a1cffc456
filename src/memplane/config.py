"""One frozen `Settings`, built where the program starts and passed down; nothing else reads the environment."""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

import msgspec

from memplane.errors import SettingsInvalid

DATA_DEFAULT = "~/.memplane"
SESSION_HISTORY_MAX_BYTES = 268_435_456

_PASSWORD = re.compile(r"(?<=//)([^:/@]*):.*@")
_ALMOST_URL = re.compile(r"\s*postgres[a-z0-9+.-]*:", re.IGNORECASE)
_KEYWORDS = re.compile(
    r"\s*(?![/.~])(?:[^=]*=.*\s)?(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=",
    re.IGNORECASE | re.DOTALL,
)
"""How libpq takes an address besides."""
_PASSWORD_IN_URL = re.compile(r"(?<=[?&])(?:ssl)?password=[^&]*&?")


def is_url(data: str) -> bool:
    """Whether a place for data is a database rather than a directory. What is almost an address is refused: as a directory
    it would be made, and named in messages, with the password in its name."""
    if data.startswith(("postgresql://", "postgres://")):
        return True
    if "://" in data or _ALMOST_URL.match(data):
        raise SettingsInvalid(
            "data: this is neither a directory nor an address that Memplane knows; write postgresql://user@host/name"
        )
    if _KEYWORDS.match(data):
        raise SettingsInvalid(
            "data: an address in keywords (host=… dbname=…) is not taken; write postgresql://user@host/name?sslmode=…, with the "
            "password in ~/.pgpass or as user:password. A directory that is called so is written ./…"
        )
    return False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. The names are those of docs/reference/settings.md."""

    data: str = DATA_DEFAULT
    """Where memory lives: a directory, or `postgresql://…`."""
    state: str = DATA_DEFAULT
    """Where this machine keeps what is its own when memory lives in a database."""
    database_connections_max: int = 20
    """How many connections to a database one process may have."""
    database_statement_seconds_max: int = 60
    """How long one statement may take, or wait for others; what takes longer is stuck."""
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

    jwt_secret: str | None = None
    """Signs and checks tokens; at least 32 bytes. None: no token signed with a secret is taken."""
    jwt_issuer: str = "helmdeck"
    """What `iss` of such a token must be; the default is that of the tokens Helmdeck's clients have."""
    jwt_audience: str | None = None
    """What `aud` must name; None: it is not looked at."""
    jwks: str | None = None
    """The public keys of an issuer: a file or an https:// address. None: no token signed with such a key is taken."""
    jwks_issuer: str | None = None
    """Needed with `jwks`, as is the audience: others trust the same issuer, and their tokens are not for us."""
    jwks_audience: str | None = None

    admin_name: str = "admin"
    """Who may log in with a password, for clients that cannot be given a token."""
    admin_password: str | None = None
    """None: nobody can log in."""

    content_chars_max: int = 2_000
    tags_max: int = 10
    tag_chars_max: int = 50
    query_chars_max: int = 65_536
    entry_bytes_max: int = 8 * 1024 * 1024

    document_bytes_max: int = 16 * 1024 * 1024
    """Of one document as it is uploaded."""
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
    recall_memory_percent: int = 50
    """Of these tokens, what memory may have at least where documents have more to say too; half of it where documents
    were asked for."""
    recall_work_ms: int = 1_000
    """How long a recall may work off what waits for enrichment, where no worker does."""

    purge_superseded_days: int = 90
    retention: Literal["forever", "adr"] = "forever"
    """How long raw days and digests are kept: `forever`, or `adr` for 7 days of what was said and 30 of summaries and
    digests."""
    retention_raw_days: int | None = None
    """Instead of the profile's days; 0 is for ever."""
    retention_summary_days: int | None = None
    retention_digest_days: int | None = None
    compact_confirm: Literal["person", "auto"] = "person"
    """Who confirms what compaction learned: a person, or this policy."""
    budget_tokens: int = 400_000
    """How many tokens of memory an agent may load at its start."""
    budget_window_tokens: int = 1_000_000
    """How many tokens its model reads in all."""
    wipe_now_bytes_max: int = 256 * 1024 * 1024
    """A larger space is not written anew at every forget; its receipts say `off_disk: false` until `wipe`."""
    redact_ledger: bool = False
    """Redact secrets before they reach the ledger. Off, the ledger keeps what was said and only what is derived
    from it is redacted; on, a wrongly redacted word is lost for good."""

    keep_memory_local: bool = False
    """Memory stays on this machine: a sync with anything but a directory is refused."""

    recall_answer_ms: int = 150
    """How long the memory-plane door lets a recall take; then it answers with what is there. Its clients wait 300."""
    claw_history_url: str | None = None
    """Where a Clawdapus proxy tells session histories, to be caught up with at the start."""
    claw_history_token: str | None = None
    claw_history_agent_ids: tuple[str, ...] = ()

    plan: str = "self-hosted"
    """What the usage of a tenant is called to be under; a name, nothing else."""
    quota_ingest_events: int | None = None
    """Events that a tenant may ingest in a billing cycle; None: as many as it likes."""
    billing_cycle_day: int = 1
    """Of the month, from 1 to 28: when a cycle begins, at midnight in UTC."""
    ingest_per_minute: int | None = None
    """Ingests of a tenant within any minute; None: as many as it likes."""
    recall_per_minute: int | None = None

    session_history_dir: str | None = None
    """Where every turn of an agent is written to its `history.jsonl` too; None writes none."""
    session_history_max_bytes: int = SESSION_HISTORY_MAX_BYTES
    """A file that would grow beyond it is rotated."""

    openai_base_url: str = "https://api.openai.com/v1"
    """Where the proxy sends what is not for another upstream."""
    openai_api_key: str | None = None
    """The server's own key, for clients that bring none."""
    anthropic_base_url: str = "https://api.anthropic.com"
    anthropic_api_key: str | None = None
    upstreams: tuple[str, ...] = ()
    """Further upstreams, `name=url`; `anthropic+` or `azure+` before the URL where it speaks like those."""
    upstream_keys: tuple[str, ...] = ()
    """The server's own keys for them, `name=key`."""
    proxy_recall_ms: int = 300
    """How long the proxy waits for memory before a turn goes on without."""
    proxy_retain_ms: int = 1_000
    """How long the end of an answer is held back until the turn is in the ledger; then it is written later."""
    proxy_timeout_s: int = 600
    """How long an upstream may be silent."""
    proxy_brief: bool = True
    """Whether a conversation through the proxy begins with the brief."""
    proxy_prices: tuple[str, ...] = ()
    """What models cost, `model=prompt/completion/cached` in dollars for a million tokens, where providers do not say."""
    claw_context_root: str | None = None
    """Where each agent's folder with its `memory.json` is; None: memory is this process's."""

    host: str = "127.0.0.1"
    """Where the server listens."""
    port: int = 8_700
    workers: int = 1
    """Server processes on the same data directory."""
    serve_enriches: bool = True
    """Whether a server on a database enriches what comes in; with False, `memplane worker` processes do."""
    worker_lease_s: int = 60
    """How long a space is a worker's own without being heard of; then another takes it over."""
    worker_failures_max: int = 10
    """After so many failures of its own a space waits for a person."""
    hosts: tuple[str, ...] = ()
    """Names besides loopback and addresses that the server answers to; `*` is any."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may call the server from a browser."""
    body_bytes_max: int = 32 * 1024 * 1024
    body_seconds_max: int = 60
    """How long a body may take to arrive."""
    metrics_open: bool = False
    """Whether `/metrics` answers without a credential."""
    shutdown_seconds_max: int = 30
    """How long requests may take to finish once the server is told to end."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses of reverse proxies whose `X-Forwarded-For` is believed."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    memory_log: str | None = None
    """Where `memory_op` lines go: a file, or `-` for stdout; None writes none."""
    otlp_endpoint: str | None = None
    """Where OpenTelemetry spans go; None makes none."""

    @property
    def place(self) -> str:
        """Where memory lives, to be shown: without a password."""
        return _PASSWORD_IN_URL.sub("", _PASSWORD.sub(r"\1@", self.data)) if is_url(self.data) else self.data

    @property
    def folder(self) -> Path:
        """Where this machine's own files are: turns that wait to be kept, how far a sync is, who runs. The data directory;
        beside a database, one for each."""
        if not is_url(self.data):
            return Path(self.data).expanduser()
        return Path(self.state).expanduser() / "databases" / sha256(self.place.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__struct_fields__} | {"data": self.place}
        for secret in (
            "key",
            "embedding_key",
            "llm_key",
            "jwt_secret",
            "admin_password",
            "claw_history_token",
            "openai_api_key",
            "anthropic_api_key",
            "upstream_keys",
        ):
            if shown[secret]:
                shown[secret] = "…"
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


_ENVIRONMENT = {
    "MEMPLANE_DATA": "data",
    "MEMPLANE_STATE": "state",
    "MEMPLANE_DATABASE_CONNECTIONS_MAX": "database_connections_max",
    "MEMPLANE_DATABASE_STATEMENT_SECONDS_MAX": "database_statement_seconds_max",
    "MEMPLANE_REDACT_LEDGER": "redact_ledger",
    "MEMPLANE_KEEP_MEMORY_LOCAL": "keep_memory_local",
    "MEMPLANE_PURGE_SUPERSEDED_DAYS": "purge_superseded_days",
    "MEMPLANE_RETENTION": "retention",
    "MEMPLANE_RETENTION_RAW_DAYS": "retention_raw_days",
    "MEMPLANE_RETENTION_SUMMARY_DAYS": "retention_summary_days",
    "MEMPLANE_RETENTION_DIGEST_DAYS": "retention_digest_days",
    "MEMPLANE_COMPACT_CONFIRM": "compact_confirm",
    "MEMPLANE_BUDGET_TOKENS": "budget_tokens",
    "MEMPLANE_BUDGET_WINDOW_TOKENS": "budget_window_tokens",
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
    "MEMPLANE_JWT_ISSUER": "jwt_issuer",
    "MEMPLANE_JWT_AUDIENCE": "jwt_audience",
    "MEMPLANE_JWKS": "jwks",
    "MEMPLANE_JWKS_ISSUER": "jwks_issuer",
    "MEMPLANE_JWKS_AUDIENCE": "jwks_audience",
    "MEMPLANE_ADMIN_NAME": "admin_name",
    "MEMPLANE_DOCUMENT_BYTES_MAX": "document_bytes_max",
    "MEMPLANE_RECALL_TOKENS_MAX": "recall_tokens_max",
    "MEMPLANE_RECALL_MEMORY_PERCENT": "recall_memory_percent",
    "MEMPLANE_RECALL_WORK_MS": "recall_work_ms",
    "MEMPLANE_RECALL_ANSWER_MS": "recall_answer_ms",
    "CLAW_HISTORY_URL": "claw_history_url",
    "CLAW_HISTORY_TOKEN": "claw_history_token",
    "CLAW_HISTORY_AGENT_IDS": "claw_history_agent_ids",
    "MEMPLANE_PLAN": "plan",
    "MEMPLANE_QUOTA_INGEST_EVENTS": "quota_ingest_events",
    "MEMPLANE_BILLING_CYCLE_DAY": "billing_cycle_day",
    "MEMPLANE_INGEST_PER_MINUTE": "ingest_per_minute",
    "MEMPLANE_RECALL_PER_MINUTE": "recall_per_minute",
    "CLAW_SESSION_HISTORY_DIR": "session_history_dir",
    "CLLAMA_SESSION_HISTORY_MAX_BYTES": "session_history_max_bytes",
    "OPENAI_BASE_URL": "openai_base_url",
    "ANTHROPIC_BASE_URL": "anthropic_base_url",
    "MEMPLANE_UPSTREAMS": "upstreams",
    "MEMPLANE_UPSTREAM_KEYS": "upstream_keys",
    "MEMPLANE_PROXY_RECALL_MS": "proxy_recall_ms",
    "MEMPLANE_PROXY_RETAIN_MS": "proxy_retain_ms",
    "MEMPLANE_PROXY_TIMEOUT_S": "proxy_timeout_s",
    "MEMPLANE_PROXY_BRIEF": "proxy_brief",
    "MEMPLANE_PROXY_PRICES": "proxy_prices",
    "CLAW_CONTEXT_ROOT": "claw_context_root",
    "MEMPLANE_HOST": "host",
    "MEMPLANE_PORT": "port",
    "MEMPLANE_WORKERS": "workers",
    "MEMPLANE_SERVE_ENRICHES": "serve_enriches",
    "MEMPLANE_WORKER_LEASE_S": "worker_lease_s",
    "MEMPLANE_WORKER_FAILURES_MAX": "worker_failures_max",
    "MEMPLANE_HOSTS": "hosts",
    "MEMPLANE_ORIGINS": "origins",
    "MEMPLANE_BODY_BYTES_MAX": "body_bytes_max",
    "MEMPLANE_BODY_SECONDS_MAX": "body_seconds_max",
    "MEMPLANE_METRICS_OPEN": "metrics_open",
    "MEMPLANE_SHUTDOWN_SECONDS_MAX": "shutdown_seconds_max",
    "MEMPLANE_TRUSTED_PROXIES": "trusted_proxies",
    "MEMPLANE_LOG_LEVEL": "log_level",
    "MEMPLANE_MEMORY_LOG": "memory_log",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "otlp_endpoint",
}

_FIELD = re.compile(r"\w+")

_LISTS = frozenset(
    {
        "hosts",
        "origins",
        "trusted_proxies",
        "claw_history_agent_ids",
        "upstreams",
        "upstream_keys",
        "proxy_prices",
    }
)
"""Settings that hold several values; their variables hold them with commas between."""

_SECRETS = {
    "MEMPLANE_KEY": "key",
    "MEMPLANE_JWT_SECRET": "jwt_secret",
    "MEMPLANE_ADMIN_PASSWORD": "admin_password",
    "OPENAI_API_KEY": "openai_api_key",
    "ANTHROPIC_API_KEY": "anthropic_api_key",
}
"""Each may also come from a file that the variable with `_FILE` at its end names: `MEMPLANE_KEY_FILE`,
`MEMPLANE_JWT_SECRET_FILE`, `MEMPLANE_ADMIN_PASSWORD_FILE`, `OPENAI_API_KEY_FILE`, `ANTHROPIC_API_KEY_FILE`."""


def settings_from(environment: Mapping[str, str]) -> Settings:
    values: dict[str, str | list[str]] = {}
    for variable, name in _ENVIRONMENT.items():
        if environment.get(variable):
            value = environment[variable]
            if name == "session_history_max_bytes" and not _is_count(value):
                continue  # Clawdapus goes on with the default, and so do we
            values[name] = _listed(value) if name in _LISTS else value
    for variable, name in _SECRETS.items():
        secret = _secret_from(environment, variable)
        if secret is not None:
            values[name] = secret
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as exc:
        raise SettingsInvalid(_named(exc)) from exc


def _is_count(value: str) -> bool:
    return value.strip().isdecimal() and int(value) > 0


def _listed(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _named(error: msgspec.ValidationError) -> str:
    """What is wrong, under the name of the variable: whoever set it never saw ours."""
    why, _, where = str(error).partition(" - at `$.")
    found = _FIELD.match(where)
    variables = [variable for variable, name in _ENVIRONMENT.items() if found and name == found[0]]
    choices = get_args(Settings.__annotations__[found[0]]) if variables and found else ()
    words = [choice for choice in choices if isinstance(choice, str)]
    more = f"; it is one of {', '.join(words)}" if words else ""
    return f"{variables[0] if variables else 'an environment variable'} cannot be used: {why}{more}"


def _secret_from(environment: Mapping[str, str], variable: str) -> str | None:
    """The variable itself, or the file that the one beside it names: a file does not show in a list of processes."""
    if environment.get(variable):
        return environment[variable]
    file = environment.get(f"{variable}_FILE")
    if not file:
        return None
    try:
        return Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsInvalid(f"{variable}_FILE: {file} cannot be read: {reason_of(exc)}") from exc


def reason_of(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read, without repeating its name or what is in it."""
    return "it is not text" if isinstance(error, UnicodeDecodeError) else error.strerror or "unreadable"
