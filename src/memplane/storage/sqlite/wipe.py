"""Wiping: leave no erased byte in a file.

`secure_delete` overwrites freed cells, and FTS5's own option removes terms from its leaves. Erased text may
still be in three places. FTS5 keeps the word that separates two leaves in a side table, even if no text
contains it any more: then the index is merged into one segment. When SQLite splits or joins pages, it leaves
copies of moved cells in the gaps between cells: VACUUM rewrites every page. And the write-ahead log contains
old pages: a truncating checkpoint empties it.
"""

import apsw

_INDEXES = {
    "turn_index": "turn_vocabulary",
    "memory_index": "memory_vocabulary",
    "span_index": "span_words",
}
"""Each index, with the table that lists its words in order."""


def leave_nothing(connection: apsw.Connection, bytes_max: int | None) -> bool:
    """Wipe a file. Raises `apsw.BusyError` at once if a reader still uses old pages. Returns False, without
    rewriting the file, if it is larger than `bytes_max`."""
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    _merge_stale_separators(connection)
    small = not is_larger(connection, bytes_max)
    if small:
        connection.execute("VACUUM")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return small


def is_larger(connection: apsw.Connection, bytes_max: int | None) -> bool:
    """Whether a file is larger than this."""
    size: int = connection.pragma("page_count") * connection.pragma("page_size")
    return bytes_max is not None and size > bytes_max


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
