"""The command line: flags, headless output, exit codes. Never imports Textual before it opens a screen."""
