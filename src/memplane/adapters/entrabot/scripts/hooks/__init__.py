"""What Claude Code runs around its own work."""
