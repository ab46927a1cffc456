"""The composition root: the only module that names concrete storage engines and model clients."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self

import msgspec

from memplane.auth.claims import NoTokens, Signer, TokenRequirements
from memplane.auth.identity import Identity
from memplane.auth.principal import Secret
from memplane.clock import Clock, system_clock
from memplane.config import Settings, is_url
from memplane.engine import Daily, Engine, Readiness
from memplane.errors import SettingsInvalid, StorageError
from memplane.models.embedding import Embedder
from memplane.models.embedding_openai import EmbeddingEndpoint, OpenAIEmbedder
from memplane.models.llm import LLM
from memplane.models.llm_anthropic import AnthropicMessages
from memplane.models.llm_endpoint import LLMEndpoint
from memplane.models.llm_openai import OpenAIChat
from memplane.models.local import LocalEmbedder, local_model
from memplane.storage.sqlite.connection import parse_key
from memplane.storage.sqlite.engine import SqliteEngine
from memplane.storage.stores import Stores
from memplane.telemetry import Listener
from memplane.transfer.move import PASSES_MAX, Move, MoveProgress, MoveReport


class Memplane(Engine):
    """Memplane in your own process: `with Memplane.open("~/.memplane") as plane: …`."""

    _clock: Clock

    @classmethod
    def open(
        cls,
        data: str | Path | None = None,
        *,
        key: str | None = None,
        settings: Settings | None = None,
        embedder: Embedder | Literal["as set"] | None = "as set",
        llm: LLM | Literal["as set"] | None = "as set",
        background: bool | Literal["elsewhere"] = False,
        clock: Clock = system_clock,
        listener: Listener | None = None,
        daily: Sequence[Daily] = (),
    ) -> Self:
        """Open a data directory. With a key, everything in it is encrypted.

        `embedder` and `llm` override the settings; None means keyword search only, and extraction by rules. With
        `background`, a thread runs enrichment, the `daily` jobs and the retention policy. Without it, a recall runs
        pending enrichment for at most `recall_work_ms`, and `space.enrich()` runs all of it.
        """
        settings = settings or Settings()
        changes = {"data": str(data)} if data is not None else {}
        changes |= {"key": key} if key is not None else {}
        settings = msgspec.structs.replace(settings, **changes)
        stores = stores_of(settings)
        chosen = embedder_of(settings) if embedder == "as set" else embedder
        model = llm_of(settings) if llm == "as set" else llm
        plane = cls(
            stores,
            settings,
            embedder=chosen,
            llm=model,
            background=background,
            clock=clock,
            listener=listener,
            daily=daily,
        )
        plane._clock = clock
        return plane

    def identity(self) -> Identity:
        """The keys and tokens of this data directory, an `Authenticator` for the server; the caller closes it."""
        tokens = tokens_of(self.settings, self._clock)
        return Identity(self._stores.credentials(), tokens, clock=self._clock)

    def readiness(self) -> Readiness:
        """Like the engine's check; the catalog of keys must be readable too."""
        found = super().readiness()
        if not found.ready:
            return found
        credentials = self._stores.credentials()
        try:
            credentials.locked_until(b"")
        except StorageError as exc:
            return Readiness(ready=False, problems=(exc.code,))
        finally:
            credentials.close()
        return found

    def has_data(self) -> bool:
        """Whether any space or key exists."""
        return any(self._stores.tenants()) or any(self._stores.catalog_tables().counts().values())

    def move_to(
        self, target: "Memplane", progress: Callable[[MoveProgress], None], *, passes_max: int = PASSES_MAX
    ) -> MoveReport:
        """Copy this installation to another; see `memplane.transfer.move`."""
        stores, wipe_bytes_max = target._stores, target.settings.wipe_now_bytes_max  # noqa: SLF001 - of its own kind
        move = Move(self._stores, stores, progress=progress, wipe_bytes_max=wipe_bytes_max)
        return move.run(passes_max=passes_max)

    def compare_with(self, target: "Memplane", progress: Callable[[MoveProgress], None]) -> MoveReport:
        """Compare another installation with this one, row by row, without writing."""
        return Move(self._stores, target._stores, progress=progress).check()  # noqa: SLF001

    def rotate_key(
        self, new_key: str | None, *, progress: Callable[[str, bool], None] = lambda _owner, _changed: None
    ) -> int:
        """Re-encrypt every space and the catalog with another key, or none; return the number of changed spaces. Safe to
        run again after an interruption. No other process may use the data directory."""
        storage = self._stores.engine
        if not isinstance(storage, SqliteEngine):
            raise SettingsInvalid("key: Memplane does not encrypt a database; use disk encryption")
        key = None if new_key is None else parse_key(new_key)
        changed = 0
        storage.rekey_catalog(key)
        for tenant in storage.tenants():
            for owner in list(self.spaces(tenant)):
                done = storage.rekey(tenant, owner, key)
                changed += done
                progress(owner, done)
        storage.use_key(key)
        return changed


def stores_of(settings: Settings) -> Stores:
    """The storage named by the settings: a directory of SQLite files, or a PostgreSQL database."""
    if not is_url(settings.data):
        folder = Path(settings.data).expanduser()
        if folder.is_file():
            raise SettingsInvalid(
                f"data: {settings.data} is a file; give a directory, or postgresql://user@host/name"
            )
        key = None if settings.key is None else parse_key(settings.key)
        return Stores(SqliteEngine(folder, key), wipe_bytes_max=settings.wipe_now_bytes_max)
    if settings.key is not None:
        raise SettingsInvalid(
            "key: Memplane does not encrypt a database; use disk encryption and unset MEMPLANE_KEY"
        )
    from memplane.storage.postgres.engine import PostgresEngine  # psycopg is slow to load

    engine = PostgresEngine(
        settings.data,
        connections_max=settings.database_connections_max,
        statement_seconds_max=settings.database_statement_seconds_max,
    )
    return Stores(engine, engine.work())


def embedder_of(settings: Settings) -> Embedder | None:
    match settings.embedding:
        case "none":
            return None
        case "local":
            return LocalEmbedder(local_model(settings.embedding_model))
        case "openai":
            return OpenAIEmbedder(
                EmbeddingEndpoint(
                    model=settings.embedding_model or "text-embedding-3-small",
                    dimension=settings.embedding_dimension,
                    url=settings.embedding_url,
                    key=settings.embedding_key,
                )
            )
    raise SettingsInvalid(f"embedding: {settings.embedding!r} is not supported; use local, openai or none")


def llm_of(settings: Settings) -> LLM | None:
    if settings.llm == "none":
        return None
    if settings.llm not in {"openai", "anthropic"}:
        raise SettingsInvalid(f"llm: {settings.llm!r} is not supported; use openai, anthropic or none")
    if settings.llm_model is None:
        raise SettingsInvalid("llm_model: name the model that extracts facts")
    endpoint = LLMEndpoint(model=settings.llm_model, url=settings.llm_url, key=settings.llm_key)
    return OpenAIChat(endpoint) if settings.llm == "openai" else AnthropicMessages(endpoint)


def tokens_of(settings: Settings, clock: Clock) -> Signer:
    if settings.jwt_secret is None and settings.jwks is None:
        return NoTokens()
    from memplane.auth.jwks import KeySet  # cryptography takes longer to load than most commands
    from memplane.auth.tokens import Tokens  # as above

    secret = None if settings.jwt_secret is None else Secret(settings.jwt_secret)
    expected = TokenRequirements(issuer=settings.jwt_issuer, audience=settings.jwt_audience)
    if settings.jwks is None:
        return Tokens(secret, expected)
    if settings.jwks_issuer is None or settings.jwks_audience is None:
        raise SettingsInvalid(
            "jwks: set jwks_issuer and jwks_audience too; the issuer also signs tokens for other services"
        )
    return Tokens(
        secret,
        expected,
        public_keys=KeySet(settings.jwks, clock),
        public_expected=TokenRequirements(issuer=settings.jwks_issuer, audience=settings.jwks_audience),
    )
