"""What tests and measurements share: small checkpoints, scripted engines, terminals, comparisons."""
