"""Fit everything that recall needs to know about one embedding model."""

from collections.abc import Sequence

import msgspec

from memplane.models.embedding import Embedder
from memplane.recall.calibration import Calibration, Wording
from memplane_eval.calibrate.need import fit_need, needed_or_not, turn_model
from memplane_eval.calibrate.queries import queries
from memplane_eval.calibrate.samples import Samples
from memplane_eval.calibrate.standing import fit_standing
from memplane_eval.retrieval import EvalStore
from memplane_eval.returned.cases import Cases


def calibrated(
    cases: Cases,
    stores: Sequence[EvalStore],
    embedder: Embedder | None,
    without: frozenset[str] = frozenset(),
) -> tuple[Calibration, Wording]:
    """Fit everything for this model, without some of the signals; None: for recall by words."""
    samples = Samples(without)
    for query in queries(cases, stores, embedder):
        samples.add(query)
    model = turn_model(needed_or_not(cases, stores), embedder)
    known = embedder is not None and not without
    found = Calibration(
        **msgspec.structs.asdict(fit_need(samples, model, embedder, without)),
        turn=samples.turn.fit(),
        memory=samples.memory.fit(),
        stored=samples.stored.fit(),
        **msgspec.structs.asdict(fit_standing(cases, embedder if known else None)),
        personal=model.personal if known else None,
    )
    return found, model.wording
