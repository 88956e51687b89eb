"""EAGLE-3: a drafter of one layer with keys of its own, which drafts a token in each pass, as SafeAILab, SpecForge,
NVIDIA and the *speculators* format publish it."""
