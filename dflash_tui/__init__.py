"""The front ends over one core: a Textual chat, a chat in lines, a headless command, and a server."""
