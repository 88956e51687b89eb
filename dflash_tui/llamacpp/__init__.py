"""Runs a GGUF: starts llama.cpp's server as a child of this program, tells it what to do, attaches to it, and ends
it."""
