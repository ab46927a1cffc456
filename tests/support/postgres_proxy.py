"""Between a client and a PostgreSQL server, and able to lose an answer on the way."""

import selectors
import socket
import threading
from contextlib import suppress
from pathlib import Path

_ANY = 1 << 16
_NAME = ".s.PGSQL.5432"


class Wire:
    """Hands on what both sides say. `lose` says what happens to the next COMMIT: `asked`, it never gets there; `answered`,
    the server does it and nobody hears of it. While `cut`, nobody gets through."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.lose: str | None = None
        self.cut = False
        self._server = str(server / _NAME)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / _NAME))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with (
            suppress(OSError),
            client,
            socket.socket(socket.AF_UNIX) as server,
            selectors.DefaultSelector() as ready,
        ):
            if self.cut:
                return
            server.connect(self._server)
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while not self.cut:
                for key, _ in ready.select(0.05):
                    said = key.fileobj.recv(_ANY)  # type: ignore[union-attr] # a socket
                    if not said:
                        return
                    if key.fileobj is client and self.lose and b"COMMIT" in said:
                        self._losing(server, said)
                        return
                    key.data.sendall(said)

    def _losing(self, server: socket.socket, said: bytes) -> None:
        how, self.lose = self.lose, None
        if how != "asked":
            server.sendall(said)
            server.recv(_ANY)
        self.cut = how == "answered and cut"
