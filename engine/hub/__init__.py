"""From a model's name to folders on this machine: which drafter belongs to which target, and fetching both.

Nothing here imports torch, and ``huggingface_hub`` is imported only for names that aren't folders.
"""
