"""Judging verify widths: what rounds cost here, drafts recorded at every position, policies played over them."""
