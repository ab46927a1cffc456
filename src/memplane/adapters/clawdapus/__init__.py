"""The memory-plane door: what cllama and `claw memory` knock at."""

from memplane.adapters.clawdapus.routes import door

__all__ = ["door"]
