"""Authentication, authorisation, limits and usage."""
