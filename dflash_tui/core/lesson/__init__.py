"""The lesson and the tour: pages over a recorded conversation."""
