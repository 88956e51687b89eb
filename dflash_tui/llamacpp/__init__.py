"""A GGUF as the model: llama.cpp's server as a child of this program, told what to do, attached to, ended with us."""
