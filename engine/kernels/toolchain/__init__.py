"""All that concerns Triton itself: optional import, interpreter, early launch, disk cache, compiling ahead."""
