"""DeepSpec's DSpark and DFlash for Gemma 4 (``deepseek-ai/dspark_gemma4_12b_block7``), whose layers are its own."""
