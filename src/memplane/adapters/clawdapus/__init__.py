"""The memory-plane door: what cllama and `claw memory` knock at."""
