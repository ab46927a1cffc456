"""An object store that fails wherever one can fail: before a request, after it, with a lost answer; and whose caller may
end between any two requests. Everything it does follows from a random generator that is given to it."""

from memplane.errors import Changed, RemoteUnavailable, Unchanged


class Crash(BaseException):
    """The process ends here. No `except Exception` catches it."""


class FaultyObjects:
    """An `ObjectStore` around another one. `before_request` runs before each request: the place where others get on."""

    def __init__(self, inner, rng, *, trouble=0.0, crash=0.0, before_request=lambda: None):
        self.url = inner.url
        self.requests = 0
        self.last_key = None
        self._inner = inner
        self._rng = rng
        self._trouble = trouble
        self._crash = crash
        self._before_request = before_request

    def get(self, key, *, unless=None):
        return self._request(lambda: self._inner.get(key, unless=unless), key)

    def put(self, key, data, *, expect=None):
        def work():
            version = self._inner.put(key, data, expect=expect)
            # The adapter did not get the answer and tried again: its own write is in the way.
            if expect is not None and self._rng.random() < self._trouble / 4:
                raise Changed(key)
            return version

        return self._request(work, key)

    def delete(self, key):
        return self._request(lambda: self._inner.delete(key), key)

    def list(self, prefix=""):
        return iter(self._request(lambda: list(self._inner.list(prefix))))

    def _request(self, work, key=None):
        self._before_request()
        self.last_key = key
        self.requests += 1
        draw = self._rng.random()
        if draw < self._crash / 2:
            raise Crash
        if draw < self._crash / 2 + self._trouble / 2:
            raise RemoteUnavailable("the request did not arrive")
        try:
            done = work()
        except (Changed, Unchanged):
            self._after()
            raise
        self._after()
        return done

    def _after(self):
        draw = self._rng.random()
        if draw < self._crash / 2:
            raise Crash
        if draw < self._crash / 2 + self._trouble / 2:
            raise RemoteUnavailable("the answer did not arrive")
