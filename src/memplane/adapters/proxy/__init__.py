"""The proxy door: clients of OpenAI and Anthropic change their base URL, and have memory."""
