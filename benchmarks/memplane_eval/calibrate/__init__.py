"""Fit how signals become probabilities for one embedding model: `python -m memplane_eval.calibrate`.

Recall ranks by scores that mean something only within one query. To compare a turn with a memory, and to decide that nothing helps,
it needs probabilities (`memplane.recall.calibration`). They are fitted on labelled questions asked of real spaces through the
product itself, so what is fitted is what is used:

* stored memories with indirect questions, each in a small space of its author and among the turns of long conversations;
* the same, said in conversation; LoCoMo and LongMemEval, whose questions name the turns that answer;
* turns for which memory helps, and turns for which it does not.

Whether a turn needs memory is fitted in steps: functions of its vector and of its words first, on everything; then their weights
among the other signals, using values of those functions for turns they were not fitted on, because the second step would trust them
too much otherwise; matches last.
"""
