"""Tools that people run beside the chat: the doctor, and the GPUs in a machine."""
