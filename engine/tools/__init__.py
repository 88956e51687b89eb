"""What people run beside the chat: doctor, selftest, and which model to suggest."""
