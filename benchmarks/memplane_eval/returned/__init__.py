"""What an agent receives from a recall with default settings, rather than what is ranked."""
