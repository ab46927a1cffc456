"""Operator commands for a Clawdapus pod: compile its `claw-pod.yml` into files, and work with those files."""
