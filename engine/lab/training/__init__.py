"""Makes a DFlash drafter for any target the engine runs: prompts, the target's answers, training, a report."""
