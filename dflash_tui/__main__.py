"""``python -m dflash_tui`` is ``dflash-chat``."""

from dflash_tui.cli.main import program

if __name__ == "__main__":
    program()
