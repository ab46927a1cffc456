"""Helmdeck's user facts: keyed facts over REST and over the older MCP transports."""
