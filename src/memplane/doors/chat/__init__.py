"""A small chat for a terminal, through the proxy: it shows what was recalled beside each answer."""
