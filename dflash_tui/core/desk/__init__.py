"""A chat without its looks: what a user can do in it, and what comes of that. A :class:`.face.Face` shows it: the
screen is one, the chat in lines another. No Textual, no torch."""
