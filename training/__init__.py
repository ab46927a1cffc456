"""Train an embedding model: data, fine-tuning, distillation, quantisation, scores.

It requires PyTorch, which Memplane does not (`training/requirements.txt`). `training/README.md` has the commands.
"""
