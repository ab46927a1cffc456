"""Every operation of the server, with every credential that must not reach it.

The operations come from the OpenAPI document and the tools from the MCP tool list, so a new one is tried without a change here.
The arguments are made from their schemas, with the victim's names and ids wherever a schema has a place for them.
"""

from datetime import timedelta
from itertools import count

import pytest

from http_server import serving
from memplane.auth.keys import Grant
from memplane.auth.principal import Right

MARK = "quetzal"
"""In everything that the victim ever said, and in no name or argument."""
KEY, TALK, BOOK, SHELF = "birds/first", "talk-of-birds", "book-of-birds", "shelf-of-birds"
METHODS = ("get", "post", "put", "patch", "delete")
REFUSED = {401, 403, 429}
MALFORMED = (
    *(
        "x",
        "mp_",
        "mp_" + "0" * 43,
        "mp_" + "z" * 5_000,
        "a.b.c",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.",
    ),
    *("alice:" + "0" * 48, "' OR 1=1 --", "../../catalog.db", "%00", "owner"),
)


@pytest.fixture
def identity(open_identity):
    return open_identity()


@pytest.fixture
def server(plane, identity):
    with serving(plane, keys=identity) as running:
        yield running
        assert running.faults == []


@pytest.fixture
def alice(plane):
    space = plane.space("alice")
    space.retain(f"My favorite bird is the {MARK}", conversation=TALK, id="turn-alice")
    space.store("fact", f"The {MARK} is a bird that nests in March", tags=[MARK])
    space.put(KEY, f"a {MARK}", category=MARK)
    space.files.create("/memories/birds.md", f"a file about the {MARK}")
    space.documents.create_collection(f"all about the {MARK}", id=SHELF)
    space.documents.upload(f"# The {MARK}\n\nIt nests.", name=f"{MARK}.md", id=BOOK, collection=SHELF)
    space.forget(entries=["never-said"], reason=MARK)
    space.enrich()
    return space


@pytest.fixture
def credentials(identity, clock):
    """By name: those of a foreign tenant, without a right, expired, malformed."""

    def made(name, **grant):
        return identity.create_key(Grant(name=name, subject=name, **grant)).bearer.reveal()

    found = {
        "foreign": made("foreign", tenant="other", rights=tuple(Right)),
        "neighbour": made("neighbour", spaces=["bob"], rights=(Right.READ, Right.WRITE)),
        "reader": made("reader", spaces=["alice"], rights=(Right.READ,)),
        "expired": made("expired", rights=tuple(Right), ttl=timedelta(hours=1)),
    }
    clock.advance(hours=2)
    return found


class Maker:
    """Arguments that fit a schema."""

    def __init__(self, document, alice):
        self._document = document
        self._numbers = count(1)
        receipt = alice.ledger.receipts()[0].id
        names = ("user_id", "agent", "agent_id", "caller", "space", "owner", "sub", "tenant_id")
        self._values = dict.fromkeys(names, "alice") | {
            "key": KEY,
            "prefix": "birds",
            "conversation": TALK,
            "conversation_id": TALK,
            "document_id": BOOK,
            "document": BOOK,
            "collection_id": SHELF,
            "receipt_id": receipt,
            "fact_id": alice.overview.newest_memories(1)[0].id,
            "id": alice.overview.newest_memories(1)[0].id,
            "recall_id": "recall-1",
            "path": "/memories/birds.md",
            "query": "bird",
            "scope": "all",
            "pack": "helmdeck.memory_read",
            "range": "7d",
        }

    def parameters(self, operation):
        path, query = {}, {}
        for given in operation.get("parameters", ()):
            where = path if given["in"] == "path" else query
            if given.get("required") or given["name"] in self._values:
                where[given["name"]] = self.value(given["schema"], given["name"])
        return path, query

    def value(self, schema, name=""):
        schema = self._resolved(schema)
        if name in self._values and "string" in str(schema.get("type", "string")):
            return self._values[name]
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return self.value(schema[several][0], name)
        chosen = [schema["const"]] if "const" in schema else schema.get("enum")
        return chosen[0] if chosen else self._made(schema, name)

    def _made(self, schema, name):
        kind = schema.get("type", "string")
        made = {
            "object": lambda: {
                each: self.value(inner, each)
                for each, inner in schema.get("properties", {}).items()
                if each in schema.get("required", ()) or each in self._values
            },
            "array": lambda: [self.value(schema.get("items", {}), name.removesuffix("s"))],
            "integer": lambda: max(1, int(schema.get("minimum", 1))),
            "number": lambda: max(1, int(schema.get("minimum", 1))),
            "boolean": lambda: False,
            "null": lambda: None,
            "string": lambda: f"text-{next(self._numbers)}",
        }
        return made[kind[0] if isinstance(kind, list) else kind]()

    def _resolved(self, schema):
        while "$ref" in schema:
            found = self._document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema


def operations(maker, document):
    """(name, needs a credential, keyword arguments of a request) of every operation."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            places, query = maker.parameters(item[method])
            url = path
            for name, value in places.items():
                url = url.replace(f"{{{name}}}", str(value).replace("/", "%2F"))
            body = item[method].get("requestBody", {}).get("content", {}).get("application/json")
            asked = {"method": method, "url": url, "params": query}
            if body is not None:
                asked["json"] = maker.value(body["schema"])
            yield f"{method} {path}", bool(item[method].get("security")), asked


def tools(client, maker):
    """The same of every MCP tool, on the victim's space."""
    listed = client.post("/mcp", json=rpc("tools/list")).json()["result"]["tools"]
    for tool in listed:
        arguments = maker.value(tool["inputSchema"])
        body = rpc("tools/call", name=tool["name"], arguments=arguments)
        yield f"tool {tool['name']}", True, {"method": "post", "url": "/mcp?space=alice", "json": body}


def rpc(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def fingerprint(space):
    """Whatever a write changes."""
    return space.ledger.position(), space.get(KEY).text, space.files.read("/memories/birds.md").text


def test_no_operation_opens_to_a_wrong_credential(server, alice, identity, credentials, figures):
    """
    Nothing of the victim is returned or changed, nothing fails with a 500, and without a valid credential every answer is a refusal.
    """
    owner = identity.create_key(Grant(name="owner", subject="owner", rights=tuple(Right))).bearer.reveal()
    client, anyone = server.client(owner), server.client(None)
    document = client.get("/openapi.json").json()
    maker = Maker(document, alice)
    tried = [*operations(maker, document), *tools(client, maker)]
    before = fingerprint(alice)
    calls, wrong = 0, []
    refusals = iter(MALFORMED * len(tried))
    for name, guarded, asked in tried:
        for who, credential in (*credentials.items(), ("malformed", next(refusals)), ("none", None)):
            headers = {} if credential is None else {"authorization": f"Bearer {credential}"}
            answer = anyone.request(**asked, headers=headers)
            calls += 1
            shown = answer.text + str(answer.headers)
            if answer.status_code == 500 or (who != "reader" and MARK in shown):
                wrong.append((name, who, answer.status_code, shown[:200]))
            if guarded and who in {"expired", "malformed", "none"} and answer.status_code not in REFUSED:
                wrong.append((name, who, answer.status_code, shown[:200]))

    assert wrong == []
    assert fingerprint(alice) == before
    figures(operations=len(tried), calls=calls, leaks=0, server_errors=0)


def test_the_matrix_reaches_the_operations(server, alice, identity):
    """
    The same arguments with the victim's own key do reach the memory: the matrix tries what would work.
    """
    own = identity.create_key(
        Grant(name="alice", subject="alice", spaces=["alice"], rights=(Right.READ, Right.WRITE))
    ).bearer.reveal()
    client = server.client(own)
    document = client.get("/openapi.json").json()
    maker = Maker(document, alice)
    reads = [one for one in operations(maker, document) if one[0].startswith("get")]
    reached = {name for name, _, asked in reads if MARK in client.request(**asked).text}
    told = {name for name, _, asked in tools(client, maker) if MARK in client.request(**asked).text}

    assert {"get /v6/facts", "get /v6/documents/{document_id}", "get /api/v1/memory/facts/{key}"} <= reached
    assert {"tool memory_search", "tool fact_get"} <= told
