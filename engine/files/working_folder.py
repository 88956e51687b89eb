"""The folder that the program was started in."""

from __future__ import annotations

import os

from ..errors import UsageFailure


def require_folder() -> None:
    """Raises ``UsageFailure`` where the working folder is gone, in which PyTorch would end the process while it loads.
    To be called before torch is imported."""
    try:
        os.getcwd()
    except OSError:
        raise UsageFailure("The folder you are in is gone.", "Go to another one with cd, and start again.") from None
