"""How often a memory was told outlives the process, and where it comes from is known from each of its chain."""

import shutil

from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import costly, fresh_plane

from engines import both_engines, only_files


@both_engines
def test_what_was_told_is_written_down_at_the_end(open_plane):
    """
    Few uses are not worth a write while a process runs; they are counted all the same, and written when it ends.
    """
    first = open_plane()
    space = first.space("alice")
    memory = space.store("preference", "Prefers tea over coffee")
    space.recall("tea or coffee?")
    assert space.overview.recall_count(memory.id) == 1
    space.recall("tea or coffee?", counted=False)
    first.close()

    assert open_plane().space("alice").overview.recall_count(memory.id) == 1


@only_files
def test_closing_never_fails_for_it(open_plane, plane_data):
    """
    Not where the space is gone by then; and it does not come back.
    """
    plane = open_plane()
    space = plane.space("alice")
    space.store("preference", "Prefers tea over coffee")
    assert space.recall("tea or coffee?").blocks
    shutil.rmtree(plane_data)
    plane.close()

    assert not open_plane().has_space("alice")


@both_engines
@costly(10, thorough=100)
@given(st.integers(2, 5), st.sets(st.integers(1, 3), max_size=2))
def test_every_link_of_a_chain_knows_all_of_it(length, forgotten):
    """
    From the first to the last, whichever one asks for, even where what stood between them is forgotten.
    """
    with fresh_plane() as plane:
        space = plane.space("alice")
        made = [space.store("fact", "version 0")]
        for number in range(1, length):
            plane.clock.advance(hours=1)
            made.append(space.store("fact", f"version {number}", supersedes=made[-1].id))
        gone = {number for number in forgotten if number < length - 1}
        if gone:
            space.forget(entries=[made[number].entry_id for number in gone])
        left = [memory.id for number, memory in enumerate(made) if number not in gone]
        found = [[memory.id for memory in space.overview.lineage(id_)] for id_ in left]

        assert all(set(each) <= set(left) for each in found)
        assert found[0] == left
        if len(gone) < 2:
            assert all(each == left for each in found)
