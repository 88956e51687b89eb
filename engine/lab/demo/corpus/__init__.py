"""The generated corpus of the bundled pair: every word of it is written by the generators in this package."""
