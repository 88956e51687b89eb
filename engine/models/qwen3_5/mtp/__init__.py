"""Qwen3.5's own multi-token prediction: one more layer, among the target's own tensors."""
