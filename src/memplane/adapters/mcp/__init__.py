"""The Model Context Protocol: memory as tools, resources and prompts, over HTTP and over stdio."""
