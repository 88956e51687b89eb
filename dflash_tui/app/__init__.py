"""The Textual chat. What Textual reads when it is imported is set here, before any part of the chat imports it."""

import os

# A lone Esc is told from the start of a key sequence by waiting this many milliseconds. Textual's default of 100 would
# be most of the time that stopping takes. A line may tear a sequence apart; a terminal on this machine does not.
os.environ.setdefault("ESCDELAY", "25" if os.environ.get("SSH_CONNECTION") else "12")
# What has changed is drawn at the next of so many moments per second. Answers are drawn at the pump's pace; this is how
# long a key waits for its echo, and with Textual's default of 60 that is half of it.
os.environ.setdefault("TEXTUAL_FPS", "120")
