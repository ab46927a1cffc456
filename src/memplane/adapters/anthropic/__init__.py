"""Anthropic's memory tool (`memory_20250818`), served from a space."""
