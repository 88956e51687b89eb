"""Tools that people run beside the chat: the doctor, the GPUs in a machine, and which model to suggest."""
