"""Services of somebody else's that Memplane calls: a memory service named in a `memory.json`."""
