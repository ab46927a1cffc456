"""Errors under the names EntraBot's programs catch."""


class EntraBotError(Exception):
    """Base of them."""


class TokenExpiredError(EntraBotError):
    """A service did not take the token: it has expired, or is for something else. Get a new one and try again."""
