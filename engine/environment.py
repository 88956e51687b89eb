"""Sets the environment variables that PyTorch and its libraries read once, before anything else. Standard library only:
every start imports this."""

from __future__ import annotations

import os


def set_pytorch_variables() -> None:
    """Sets the variables that nobody else has set."""
    # Large tensors get pages of 2 MB. With those of 4 KB a pass on a CPU also waits for page tables: on a busy virtual
    # machine longer than for the weights themselves.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    # Turns that OpenMP's threads (GNU's) spin for one another before they sleep. The default is 300 times as many:
    # where another program has taken a core, each of a pass's hundred products then waits for milliseconds. These few
    # outlast what PyTorch does between two products; the library takes as few by itself where threads outnumber cores.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
