"""Gemma 4: the text model of ``google/gemma-4-*``."""
