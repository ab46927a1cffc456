"""Who knocks, and what they may open."""
