"""Layers that recur: the gated delta rule over a round's rows, and the gates behind it."""
