"""Errors under the names EntraBot's programs catch."""


class EntraBotError(Exception):
    """Base of them."""


class TokenExpiredError(EntraBotError):
    """A service rejected the token: it has expired or is for another resource. Request a new one and retry."""
