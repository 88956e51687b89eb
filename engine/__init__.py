"""Inference engine of dflash-chat: a Gemma 4 target, a DFlash drafter and the loop that joins them.

Importing this package imports neither torch nor transformers; the modules that need them import them.
"""
