"""What a directory looks like: two levels, with sizes, without what is hidden."""

from collections.abc import Sequence

from memplane.space.files import FileEntry

_LEVELS = 2
_UNITS = ("B", "K", "M", "G")
_STEP = 1_024


def listing(folder: str, entries: Sequence[FileEntry]) -> str:
    """A directory's size is that of all files in it, hidden ones too: it says how much memory there is."""
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    for entry in entries:
        parts = tuple(entry.path.removeprefix(f"{folder}/").split("/"))
        if any(part.startswith(".") or part == "node_modules" for part in parts[:_LEVELS]):
            continue
        for depth in range(1, min(len(parts), _LEVELS) + 1):
            place = parts[:depth]
            sizes[place] = sizes.get(place, 0) + entry.bytes
            if depth < len(parts):
                folders.add(place)
    total = sum(entry.bytes for entry in entries)
    rows = [f"{size_text(total)}\t{folder}"]
    for place in sorted(sizes):
        slash = "/" if place in folders else ""
        rows.append(f"{size_text(sizes[place])}\t{'/'.join((folder, *place))}{slash}")
    header = f"Here're the files and directories up to 2 levels deep in {folder}, excluding hidden items and node_modules:"
    return "\n".join([header, *rows])


def size_text(count: int) -> str:
    """`512B`, `1.5K`, `2.0M`."""
    if count < _STEP:
        return f"{count}B"
    size, unit = float(count), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f}{_UNITS[unit]}"
