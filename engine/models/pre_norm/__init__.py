"""Decoders whose branches read the normed residual: Llama, Qwen3, Qwen3-MoE and gpt-oss. Their folders say how they
differ."""
