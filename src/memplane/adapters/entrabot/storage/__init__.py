"""Where EntraBot's memory lives: on disk, or in a container of blobs."""
