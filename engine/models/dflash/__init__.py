"""DFlash: the drafter, ``z-lab/*-DFlash``."""
