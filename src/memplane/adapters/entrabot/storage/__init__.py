"""EntraBot's storage: a directory or a blob container."""
