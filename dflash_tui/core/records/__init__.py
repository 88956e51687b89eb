"""One record of rounds: a step as a row, rows in blocks, and the bytes that history, session and trace share."""
