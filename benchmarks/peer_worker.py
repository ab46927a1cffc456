"""One peer, in the environment it was installed into: `python peer_worker.py NAME < request.json`.

The request names texts and questions and a file with their vectors; the answer says what was found and how long it
took. It runs under an interpreter that knows nothing of Memplane, so it needs the standard library and the peer only.

    request: {"folder", "vectors", "dimension", "k", "stores": [{"name", "texts": […], "questions": […]}]}
    answer:  {"version", "stores": [{"ingest_s", "ranked": [[place, …], …], "latencies_ms": […]}]}
"""

import importlib
import json
import os
import sqlite3
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

Search = Callable[[str, int], list[int]]
"""The places of the best texts for a question."""

_QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "DO_NOT_TRACK": "1",
    # Asked for when the client is made, and never used: nothing here calls a provider.
    "OPENAI_API_KEY": "unused",
}


class Vectors:
    """The vectors Memplane's own embedder made, by text."""

    def __init__(self, path: Path, dimension: int) -> None:
        self.dimension = dimension
        keys = json.loads(path.with_suffix(".json").read_text("utf-8"))
        values = array("f")
        values.frombytes(path.read_bytes())
        self._found = {
            # Some peers trim what they are given.
            key.strip(): values[place * dimension : (place + 1) * dimension].tolist()
            for place, key in enumerate(keys)
        }

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [self._found[text.strip()] for text in texts]


@contextmanager
def chromadb(vectors: Vectors, folder: Path, texts: list[str]) -> Iterator[Search]:
    import chromadb as chroma

    class Embedding(chroma.EmbeddingFunction[Any]):
        def __init__(self) -> None:
            """Made by us, kept by nobody."""

        def __call__(self, input: list[str]) -> Any:  # noqa: A002  its name for it
            return vectors(input)

        @staticmethod
        def name() -> str:
            return "given"

        def get_config(self) -> dict[str, Any]:
            return {}

        @staticmethod
        def build_from_config(_config: dict[str, Any]) -> "Embedding":
            return Embedding()

    client = chroma.PersistentClient(str(folder), chroma.Settings(anonymized_telemetry=False))
    collection = client.create_collection(
        "turns", embedding_function=Embedding(), configuration={"hnsw": {"space": "cosine"}}
    )
    for place, text in enumerate(texts):
        collection.add(ids=[str(place)], documents=[text])

    def search(question: str, k: int) -> list[int]:
        found = collection.query(query_texts=[question], n_results=k, include=[])
        return [int(id_) for id_ in found["ids"][0]]

    yield search


@contextmanager
def mem0(vectors: Vectors, folder: Path, texts: list[str]) -> Iterator[Search]:
    from mem0 import Memory
    from mem0.embeddings.base import EmbeddingBase

    class Embedding(EmbeddingBase):  # type: ignore[misc]
        def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
            return vectors([text])[0]

    store = {
        "collection_name": "turns",
        "path": str(folder / "qdrant"),
        "on_disk": True,
        "embedding_model_dims": vectors.dimension,
    }
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = Embedding()
    for place, text in enumerate(texts):
        memory.add(text, user_id="bench", metadata={"place": place}, infer=False)

    def search(question: str, k: int) -> list[int]:
        found = memory.search(question, filters={"user_id": "bench"}, top_k=k)
        return [int(hit["metadata"]["place"]) for hit in found["results"]]

    yield search


@contextmanager
def langgraph(vectors: Vectors, folder: Path, texts: list[str]) -> Iterator[Search]:
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        # Many Pythons are built without extensions for SQLite, and its vectors are one.
        sys.modules["sqlite3"] = importlib.import_module("pysqlite3")
    from langgraph.store.sqlite import SqliteStore

    # Its documentation says `fields`; version 3.1 reads `text_fields`.
    index = {"dims": vectors.dimension, "embed": vectors, "fields": ["text"], "text_fields": ["text"]}
    with SqliteStore.from_conn_string(str(folder / "store.db"), index=index) as store:
        store.setup()
        for place, text in enumerate(texts):
            store.put(("turns",), str(place), {"text": text})

        def search(question: str, k: int) -> list[int]:
            return [int(item.key) for item in store.search(("turns",), query=question, limit=k)]

        yield search


@contextmanager
def bm25s(_vectors: Vectors, _folder: Path, texts: list[str]) -> Iterator[Search]:
    import bm25s as library

    index = library.BM25()
    index.index(library.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def search(question: str, k: int) -> list[int]:
        tokens = library.tokenize(question, stopwords="en", show_progress=False)
        found, _ = index.retrieve(tokens, k=min(k, len(texts)), show_progress=False)
        return [int(place) for place in found[0]]

    yield search


PEERS = {"chromadb": chromadb, "mem0ai": mem0, "langgraph-checkpoint-sqlite": langgraph, "bm25s": bm25s}


def answer(name: str, request: dict[str, Any]) -> dict[str, Any]:
    vectors = Vectors(Path(request["vectors"]), request["dimension"])
    first = request["stores"][0]
    with PEERS[name](vectors, _made(request, "warm-up"), first["texts"][:2]) as search:
        search(first["questions"][0], 1)  # What is imported and compiled now is not counted below.
    stores = []
    for number, store in enumerate(request["stores"]):
        folder = _made(request, str(number))
        started = time.perf_counter()
        with PEERS[name](vectors, folder, store["texts"]) as search:
            ingest_s = time.perf_counter() - started
            ranked, latencies = [], []
            for question in store["questions"]:
                started = time.perf_counter()
                ranked.append(search(question, request["k"]))
                latencies.append((time.perf_counter() - started) * 1_000)
        stores.append({"ingest_s": ingest_s, "ranked": ranked, "latencies_ms": latencies})
    return {"version": version(name), "stores": stores}


def _made(request: dict[str, Any], name: str) -> Path:
    folder = Path(request["folder"]) / name
    folder.mkdir()
    return folder


def main() -> None:
    os.environ.update(_QUIET)
    request = json.load(sys.stdin)
    os.environ.update({"HOME": request["folder"], "MEM0_DIR": request["folder"]})
    # Libraries chat; the answer stands alone on stdout.
    with redirect_stdout(sys.stderr):
        found = answer(sys.argv[1], request)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
