"""How a fixed number of seats is given out by weight: by largest remainders, as for a parliament."""

from collections.abc import Mapping


def apportioned(parties: Mapping[str, tuple[float, int]], seats: int) -> dict[str, int]:
    """How many seats each party of a weight and a size gets; none more than it can fill."""
    given = dict.fromkeys(parties, 0)
    while seats:
        open_ = [id_ for id_, (weight, size) in parties.items() if given[id_] < size and weight > 0]
        if not open_:
            break
        whole = sum(parties[id_][0] for id_ in open_)
        due = {id_: seats * parties[id_][0] / whole for id_ in open_}
        sure = {id_: min(int(due[id_]), parties[id_][1] - given[id_]) for id_ in open_}
        if not any(sure.values()):
            for id_ in sorted(open_, key=lambda id_: -due[id_])[:seats]:
                given[id_] += 1
                seats -= 1
            continue
        for id_, count in sure.items():
            given[id_] += count
            seats -= count
    return given
