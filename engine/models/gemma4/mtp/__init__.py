"""Gemma 4's own multi-token prediction (MTP): the assistants, ``google/gemma-4-*-it-assistant``."""
