"""Memplane: a self-hosted memory plane for AI agents."""
