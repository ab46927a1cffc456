"""Measuring quality on labelled data that is not ours to ship; see docs and `MEMPLANE_EVAL_DATA`."""
