"""The model definitions: the Gemma 4 target and the DFlash drafter."""
