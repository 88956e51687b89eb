"""The domain "follow": a wish about what the model has just made, a page or a program."""

from __future__ import annotations

import random
from typing import Any

from engine.lab.demo.corpus import code, html
from engine.lab.demo.corpus.follow import pages, programs
from engine.lab.demo.corpus.sample import Sample

__all__ = ["check", "generate"]

PAGES = 0.6


def generate(rng: random.Random) -> Sample:
    """One exchange about the answer before it, which is part of the sample."""
    return pages.generate(rng) if rng.random() < PAGES else programs.generate(rng)


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """Verdicts: "valid" (the page is whole, the program runs), "changed" (what was wished for is there) and "kept" (the
    rest is as it was); an explanation has "says" alone."""
    if "says" in check:
        return {"says": str(check["says"]) in response}
    wanted = str(check["text"]).split("\n")
    text = response.removesuffix("<turn|>")
    if check["kind"] == "html":
        page = html.extract_page(text)
        valid = html.check(text, check["facts"])["valid"]
    else:
        page = code.code_of(text)
        valid = all(code.check(text, check["facts"]).values())
    there = (page or "").split("\n")
    return {
        "valid": valid,
        "changed": bool(page) and all(line in there for line in check["changed"]),
        "kept": sum(line in there for line in wanted) >= 0.95 * len(wanted),
    }
