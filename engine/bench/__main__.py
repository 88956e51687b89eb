import sys

from .command import main

if __name__ == "__main__":  # processes that the bench starts import this file under another name
    sys.exit(main())
