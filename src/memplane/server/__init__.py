"""The HTTP server that the adapters plug into."""
