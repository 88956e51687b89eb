"""DeepSpec's EAGLE-3 for Gemma 4 (``deepseek-ai/eagle3_gemma4_12b_ttt7``), whose layer is one of the target's."""
