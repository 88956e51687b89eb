"""A chat in lines, for screen readers and bare terminals: nothing is drawn, no cursor moves, nothing needs a mouse."""
