"""An event stream read by hand: what the official client hides is what these tests look at."""

import json
from contextlib import contextmanager

import httpx


class Talk:
    """An open stream; `events()` reads on, `post` writes to it."""

    def __init__(self, client, response):
        self.client = client
        self.response = response
        self._lines = response.iter_lines()
        self.endpoint = None

    def event(self):
        """The next event as (name, data); a comment is (None, its text)."""
        name = data = None
        for line in self._lines:
            if line.startswith(": "):
                data = line[2:]
            elif line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = line[6:]
            elif not line and data is not None:
                return name, data
        return None

    def post(self, message, *, client=None, endpoint=None):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return (client or self.client).post(endpoint or self.endpoint, content=body)

    def call(self, method, params=None, *, id=1):
        message = {"jsonrpc": "2.0", "id": id, "method": method} | (
            {} if params is None else {"params": params}
        )
        assert self.post(message).status_code == 202
        name, data = self.event()
        assert name == "message"
        return json.loads(data)


@contextmanager
def talking(client: httpx.Client, path="/api/v1/mcp/sse"):
    with client.stream("GET", path) as response:
        talk = Talk(client, response)
        if response.status_code == 200:
            name, talk.endpoint = talk.event()
            assert name == "endpoint"
        yield talk
