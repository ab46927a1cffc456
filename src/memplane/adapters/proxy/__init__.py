"""The proxy: adds memory to OpenAI and Anthropic clients that change their base URL."""
