"""What Llama, Qwen3 and Qwen3-MoE are: plain decoders whose branches read the normed residual. Their folders say how
they differ."""
