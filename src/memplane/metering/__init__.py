"""What tenants use: counted, told, and bounded."""
