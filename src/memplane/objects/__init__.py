"""Memory that follows its owner: object storage, the tree of files a space can be, sync, compaction, retention."""
