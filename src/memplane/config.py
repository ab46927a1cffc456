"""One frozen `Settings`, built at program start and passed down; no other module reads the environment."""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

import msgspec

from memplane.errors import SettingsInvalid

DATA_DEFAULT = "~/.memplane"
SESSION_HISTORY_MAX_BYTES = 268_435_456
WIPE_NOW_BYTES_MAX = 256 * 1024 * 1024

_PASSWORD = re.compile(r"(?<=//)([^:/@]*):.*@")
_ALMOST_URL = re.compile(r"\s*postgres[a-z0-9+.-]*:", re.IGNORECASE)
_KEYWORDS = re.compile(
    r"\s*(?![/.~])(?:[^=]*=.*\s)?(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=",
    re.IGNORECASE | re.DOTALL,
)
"""The keyword form of a libpq connection string."""
_PASSWORD_IN_URL = re.compile(r"(?<=[?&])(?:ssl)?password=[^&]*&?")


def is_url(data: str) -> bool:
    """Whether `data` is a database URL rather than a directory. A malformed URL is rejected: as a directory it would be
    created, and shown in messages, with the password in its name."""
    if data.startswith(("postgresql://", "postgres://")):
        return True
    if "://" in data or _ALMOST_URL.match(data):
        raise SettingsInvalid(
            "data: neither a directory nor a supported URL; use postgresql://user@host/name"
        )
    if _KEYWORDS.match(data):
        raise SettingsInvalid(
            "data: keyword connection strings (host=… dbname=…) are not supported; use postgresql://user@host/name?sslmode=…, "
            "with the password in ~/.pgpass or as user:password. To name a directory like this, prefix it with ./"
        )
    return False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings; docs/reference/settings.md documents each."""

    data: str = DATA_DEFAULT
    """Where data is stored: a directory, or `postgresql://…`."""
    state: str = DATA_DEFAULT
    """Where this machine keeps its local files when data is stored in a database."""
    database_connections_max: int = 20
    """Maximum database connections per process."""
    database_statement_seconds_max: int = 60
    """Timeout of one statement, including lock waits."""
    key: str | None = None
    """The encryption key, 64 hexadecimal digits; None disables encryption."""

    embedding: str = "local"
    """The embedding provider: `local`, `openai` or `none`."""
    embedding_model: str | None = None
    """`local`: `arctic-embed-s`, or a directory with your own model; `openai`: the model's name."""
    embedding_url: str = "https://api.openai.com/v1"
    embedding_key: str | None = None
    embedding_dimension: int = 1_536
    """Vector size of an `openai` model; a local model declares its own."""
    llm: str = "none"
    """The LLM provider that extracts facts in addition to the rules: `none`, `openai` or `anthropic`."""
    llm_model: str | None = None
    llm_url: str = ""
    """Empty for the provider's default address."""
    llm_key: str | None = None
    catalog: str | None = None
    """A file with your own predicates."""

    jwt_secret: str | None = None
    """Signs and verifies tokens; at least 32 bytes. None disables tokens signed with a shared secret."""
    jwt_issuer: str = "helmdeck"
    """The required `iss` of such a token; the default matches tokens of Helmdeck's clients."""
    jwt_audience: str | None = None
    """The required `aud`; None disables the check."""
    jwks: str | None = None
    """The public keys of an issuer: a file or an https:// URL. None disables tokens signed with a public key."""
    jwks_issuer: str | None = None
    """Required with `jwks`, like the audience: the same issuer also signs tokens for other services."""
    jwks_audience: str | None = None

    admin_name: str = "admin"
    """The user name for password login, for clients that cannot use a token."""
    admin_password: str | None = None
    """None disables password login."""

    content_chars_max: int = 2_000
    tags_max: int = 10
    tag_chars_max: int = 50
    query_chars_max: int = 65_536
    entry_bytes_max: int = 8 * 1024 * 1024

    document_bytes_max: int = 16 * 1024 * 1024
    """Maximum size of an uploaded document."""
    file_bytes_max: int = 256 * 1024
    """Maximum size of one agent file."""
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
    """The minimum share of the tokens reserved for memory when documents match too; halved when the query asks for
    documents."""
    recall_work_ms: int = 1_000
    """How long a recall may run pending enrichment when no worker runs."""

    purge_superseded_days: int = 90
    expired_grace_days: int = 3
    """Days between the expiry of a fact and its erasure, so that a clock that jumps forward erases nothing for good."""
    retention: Literal["forever", "adr"] = "forever"
    """The retention profile: `forever`, or `adr` (7 days of raw turns, 30 days of summaries and digests)."""
    retention_raw_days: int | None = None
    """Overrides the profile; 0 keeps forever."""
    retention_summary_days: int | None = None
    retention_digest_days: int | None = None
    compact_confirm: Literal["person", "auto"] = "person"
    """Who confirms drafts from compaction: a person, or automatic."""
    budget_tokens: int = 400_000
    """Token budget for memory an agent loads at start."""
    budget_window_tokens: int = 1_000_000
    """Context window of the agent's model, in tokens."""
    wipe_now_bytes_max: int = WIPE_NOW_BYTES_MAX
    """A larger space is not rewritten on every forget; its receipts say `off_disk: false` until `wipe`."""
    redact_ledger: bool = False
    """Redact secrets before they reach the ledger. When off, the ledger keeps the original text and only derived data is
    redacted; when on, a false positive is lost permanently."""

    keep_memory_local: bool = False
    """Refuse to sync with anything but a local directory."""

    recall_answer_ms: int = 150
    """Time limit of a Clawdapus recall, after which it returns a partial answer; its clients time out after 300 ms."""
    claw_history_url: str | None = None
    """The session history URL of a Clawdapus proxy, imported at start."""
    claw_history_token: str | None = None
    claw_history_agent_ids: tuple[str, ...] = ()

    plan: str = "self-hosted"
    """The plan name shown in usage reports."""
    quota_ingest_events: int | None = None
    """Maximum ingested events per tenant and billing cycle; None for no limit."""
    billing_cycle_day: int = 1
    """Day of the month, 1 to 28, on which a cycle begins at midnight UTC."""
    ingest_per_minute: int | None = None
    """Maximum ingest calls per tenant and minute; None for no limit."""
    recall_per_minute: int | None = None

    session_history_dir: str | None = None
    """Directory for `history.jsonl` session histories; None disables them."""
    session_history_max_bytes: int = SESSION_HISTORY_MAX_BYTES
    """Maximum size of a history file before it is rotated."""

    openai_base_url: str = "https://api.openai.com/v1"
    """The proxy's default upstream."""
    openai_api_key: str | None = None
    """The server's key, used for clients without one."""
    anthropic_base_url: str = "https://api.anthropic.com"
    anthropic_api_key: str | None = None
    upstreams: tuple[str, ...] = ()
    """Additional upstreams, `name=url`; prefix the URL with `anthropic+` or `azure+` for those APIs."""
    upstream_keys: tuple[str, ...] = ()
    """The server's keys for these upstreams, `name=key`."""
    proxy_recall_ms: int = 300
    """How long the proxy waits for a recall before it forwards the turn without memory."""
    proxy_retain_ms: int = 1_000
    """How long the end of an answer waits for the turn to be durable; after that it is written later."""
    proxy_timeout_s: int = 600
    """Read timeout of an upstream."""
    proxy_brief: bool = True
    """Whether the proxy injects the brief at the start of a conversation."""
    proxy_prices: tuple[str, ...] = ()
    """Model prices, `model=prompt/completion/cached` in dollars per million tokens, for providers that report none."""
    claw_context_root: str | None = None
    """Directory with one folder per agent holding its `memory.json`; None uses this server's memory."""

    host: str = "127.0.0.1"
    """The address the server listens on."""
    port: int = 8_700
    workers: int = 1
    """Number of server processes on the same data directory."""
    serve_enriches: bool = True
    """Whether a server on a database runs enrichment; if False, run `memplane worker` processes."""
    worker_lease_s: int = 60
    """Lease time: a worker that does not renew its lease loses the space to another worker."""
    worker_failures_max: int = 10
    """Failures after which a space becomes a dead letter and waits for a manual retry."""
    hosts: tuple[str, ...] = ()
    """Accepted host names besides loopback and addresses; `*` accepts any."""
    origins: tuple[str, ...] = ()
    """Origins allowed to call the server from a browser."""
    body_bytes_max: int = 32 * 1024 * 1024
    body_seconds_max: int = 60
    """Time limit for receiving a request body."""
    metrics_open: bool = False
    """Whether `/metrics` needs no credential."""
    shutdown_seconds_max: int = 30
    """How long running requests may take to finish on shutdown."""
    supervise: bool = False
    """Whether a supervisor restarts a single server process too; several always have one."""
    stuck_seconds_max: float = 60.0
    """How long a supervised server process may do nothing else than one computation before it is killed; 0 is forever."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses of reverse proxies whose `X-Forwarded-For` is trusted."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    memory_log: str | None = None
    """Destination of `memory_op` lines: a file, or `-` for stdout; None disables them."""
    otlp_endpoint: str | None = None
    """OpenTelemetry endpoint for spans; None disables tracing."""

    @property
    def place(self) -> str:
        """`data` for display, without the password."""
        return _PASSWORD_IN_URL.sub("", _PASSWORD.sub(r"\1@", self.data)) if is_url(self.data) else self.data

    @property
    def folder(self) -> Path:
        """The directory for this machine's local files (pending turns, sync state, process ids): the data directory, or one
        directory per database below `state`."""
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
    "MEMPLANE_EXPIRED_GRACE_DAYS": "expired_grace_days",
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
    "MEMPLANE_SUPERVISE": "supervise",
    "MEMPLANE_STUCK_SECONDS_MAX": "stuck_seconds_max",
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
"""Settings with several values; their variables are comma-separated."""

_SECRETS = {
    "MEMPLANE_KEY": "key",
    "MEMPLANE_JWT_SECRET": "jwt_secret",
    "MEMPLANE_ADMIN_PASSWORD": "admin_password",
    "OPENAI_API_KEY": "openai_api_key",
    "ANTHROPIC_API_KEY": "anthropic_api_key",
}
"""Each can also be read from the file named by the variable with the suffix `_FILE`: `MEMPLANE_KEY_FILE`,
`MEMPLANE_JWT_SECRET_FILE`, `MEMPLANE_ADMIN_PASSWORD_FILE`, `OPENAI_API_KEY_FILE`, `ANTHROPIC_API_KEY_FILE`."""


def settings_from(environment: Mapping[str, str]) -> Settings:
    values: dict[str, str | list[str]] = {}
    for variable, name in _ENVIRONMENT.items():
        if environment.get(variable):
            value = environment[variable]
            if name == "session_history_max_bytes" and not _is_count(value):
                continue  # Clawdapus falls back to the default here; so do we
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
    """The problem, under the name of the environment variable rather than of our field."""
    why, _, where = str(error).partition(" - at `$.")
    found = _FIELD.match(where)
    variables = [variable for variable, name in _ENVIRONMENT.items() if found and name == found[0]]
    choices = get_args(Settings.__annotations__[found[0]]) if variables and found else ()
    words = [choice for choice in choices if isinstance(choice, str)]
    more = f"; use one of {', '.join(words)}" if words else ""
    return f"{variables[0] if variables else 'an environment variable'} is invalid: {why}{more}"


def _secret_from(environment: Mapping[str, str], variable: str) -> str | None:
    """The variable's value, or the content of the file named by `…_FILE`, which does not show in a process list."""
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
    """Why a file cannot be read, without its name or content."""
    return "it is not text" if isinstance(error, UnicodeDecodeError) else error.strerror or "unreadable"
