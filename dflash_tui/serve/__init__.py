"""The engine as a server for any client; ``API.md`` says what it takes and gives. Knows no screen."""
