"""Measures what decoding costs on this machine, each figure beside its bytes and its share of what the memory can
do."""
