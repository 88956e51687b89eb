"""The lesson: stops of text over a recorded conversation, from a file that teachers can replace."""
