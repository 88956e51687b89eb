"""What Llama, Qwen3, Qwen3-MoE and gpt-oss are: decoders whose branches read the normed residual. Their folders say how
they differ."""
