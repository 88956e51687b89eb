"""The target as it is trained: its sizes, modules, tokenizer and files."""
