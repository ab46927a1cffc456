"""Leaving no erased byte behind.

`secure_delete` overwrites freed cells and FTS5's own option takes terms out of its leaves. Three places still
remember. FTS5 keeps the word that parts two leaves in a side table even when no text holds it any more: where such a
word is left, the index is merged into one segment, which writes those words anew. When SQLite parts or joins pages, it
leaves copies of moved cells in the space between, which no deletion reaches: VACUUM writes every page anew. And the
write-ahead log holds the pages as they were: a truncating checkpoint empties it.
"""

import apsw

_INDEXES = {
    "turn_index": "turn_vocabulary",
    "memory_index": "memory_vocabulary",
    "span_index": "span_words",
}
"""With the table that lists each one's words in order."""


def leave_nothing(connection: apsw.Connection, bytes_max: int | None) -> bool:
    """Raises `apsw.BusyError` where a reader holds old pages; at once, before anything is done for nothing. A file over
    `bytes_max` is not written anew: False."""
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    _merge_stale_separators(connection)
    small = bytes_max is None or connection.pragma("page_count") * connection.pragma("page_size") <= bytes_max
    if small:
        connection.execute("VACUUM")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return small


def _merge_stale_separators(connection: apsw.Connection) -> None:
    for index, vocabulary in _INDEXES.items():
        if _has_stale_separator(connection, index, vocabulary):
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")


def _has_stale_separator(connection: apsw.Connection, index: str, vocabulary: str) -> bool:
    """A separator begins with `0` and is the shortest prefix that tells two leaves apart: it is stale when no
    word in the index starts with it. It is counted in bytes, so it may end in the middle of a character."""
    separators = connection.execute(
        f"SELECT DISTINCT substr(term, 2) FROM {index}_idx WHERE length(term) > 1"
    )
    first_word = (
        f"SELECT CAST(term AS BLOB) FROM {vocabulary} WHERE term >= CAST(? AS TEXT) ORDER BY term LIMIT 1"
    )
    for (separator,) in separators.fetchall():
        found = connection.execute(first_word, (separator,)).fetchone()
        if found is None or not found[0].startswith(separator):
            return True
    return False
