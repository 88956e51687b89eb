"""What kernels of decoding and of prompts have in common: helpers that are compiled into both."""
