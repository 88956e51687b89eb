"""What is measured once on a machine and kept from one start to the next: costs of rounds, and tiles of kernels."""
