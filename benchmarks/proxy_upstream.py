"""A provider that answers at once, for `benchmarks.proxy`: `python -m benchmarks.proxy_upstream`. Prints its port; what is
below `/hang` it never answers."""

import asyncio
import json
import sys

CHUNKS = 20
PAUSE_S = 0.005

_BODY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Noted."}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
).encode()
_WHOLE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_BODY)
) + _BODY
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_EVENT = b'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
_DONE = b"data: [DONE]\n\n"


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
            body = await reader.readexactly(int(length or 0))
            if head.startswith(b"POST /hang"):
                await asyncio.sleep(3_600)
            elif b'"stream":true' in body:
                writer.write(_HEAD)
                for _ in range(CHUNKS):
                    writer.write(_chunk(_EVENT))
                    await writer.drain()
                    await asyncio.sleep(PAUSE_S)
                writer.write(_chunk(_DONE) + b"0\r\n\r\n")
            else:
                writer.write(_WHOLE)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        pass  # the client, or this program, is done
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
