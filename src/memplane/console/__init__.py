"""The console: pages for people who would rather look than read JSON."""
