"""The bundled pair and the scripts that made it."""
