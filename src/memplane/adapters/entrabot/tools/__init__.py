"""EntraBot's memory tools: interactions, daily summaries, promises and state."""
