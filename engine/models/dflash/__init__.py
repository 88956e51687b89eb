"""DFlash, the block-diffusion drafter of ``z-lab/*-DFlash``."""
