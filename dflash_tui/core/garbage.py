"""Python's search for garbage, kept from looking at what loading made again and again."""

import gc


def freeze_garbage_collector() -> None:
    """Tell the garbage collector to leave alone what loading made: some hundred thousand objects that never go away.
    Looks at the newest alone before that: to look at all takes a quarter of a second, in which nothing can be drawn or
    answered, and finds no tensor and less than a megabyte."""
    gc.collect(1)
    gc.freeze()
