"""The engine as an OpenAI-compatible server; ``API.md`` says what it takes and gives. Knows no screen."""
