"""Questions that the bundled pair answers well, for people who meet it for the first time."""

STARTERS = (
    "Write a quicksort in Python",
    "create a single-file HTML animation of a drone swarm",
    "What is speculative decoding?",
    "What can you do?",
)
