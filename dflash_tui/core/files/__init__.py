"""What leaves the program: saved files, the clipboard, the desktop, the log."""
