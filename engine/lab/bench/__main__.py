import sys

from ...errors import UsageFailure
from ...files.working_folder import require_folder

if __name__ == "__main__":  # processes that the bench starts import this file under another name
    try:
        require_folder()
    except UsageFailure as problem:
        print(f"{problem}\n  {problem.hint}", file=sys.stderr)
        sys.exit(2)
    from .command import main

    sys.exit(main())
