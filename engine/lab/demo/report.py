"""Judges the pair's figures by the acceptance criteria and writes ``report.json``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MEBIBYTE = 2**20
COPIED = ("follow", "edit")
"""Domains whose answers are mostly copied from the prompt."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One demand on a figure, the figure itself, and whether the demand is met."""

    name: str
    demand: str
    value: float
    met: bool


def at_least(name: str, value: float, bound: float) -> Criterion:
    return Criterion(name, f">= {bound:g}", round(value, 4), value >= bound)


def at_most(name: str, value: float, bound: float) -> Criterion:
    return Criterion(name, f"<= {bound:g}", round(value, 4), value <= bound)


def within(name: str, value: float, low: float, high: float) -> Criterion:
    return Criterion(name, f"{low:g} .. {high:g}", round(value, 4), low <= value <= high)


def judge(figures: dict[str, Any]) -> list[Criterion]:
    """All criteria that the figures can answer."""
    parts: tuple[Callable[[dict[str, Any]], Iterator[Criterion]], ...] = (_files, _quality, _lossless, _acceptance)
    return [criterion for part in parts for criterion in part(figures)]


def write_report(path: Path, figures: dict[str, Any], provenance: dict[str, Any]) -> list[Criterion]:
    """Writes provenance, criteria and figures; returns the criteria."""
    criteria = judge(figures)
    report = {**provenance, "criteria": [asdict(criterion) for criterion in criteria], "figures": figures}
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return criteria


def _files(figures: dict[str, Any]) -> Iterator[Criterion]:
    sizes = figures["bytes"]
    yield at_most("A1 target MiB", sizes["target/model.safetensors"] / MEBIBYTE, 15.9)
    yield at_most("A1 drafter MiB", sizes["drafter/model.safetensors"] / MEBIBYTE, 6)
    yield at_most("A1 tokenizer MiB", sizes["target/tokenizer.json"] / MEBIBYTE, 0.5)
    yield at_least("A3 smallest share of an expert", figures["least_expert_share"], 0.02)


def _quality(figures: dict[str, Any]) -> Iterator[Criterion]:
    bounds = {
        "code": {"parses": 0.98, "passes": 0.90},
        "html": {"valid": 0.95, "slots": 0.90},
        "maths": {"answer": 0.85, "steps": 0.85},
        "explain": {"all": 0.95},
        "unknown": {"all": 0.90},
        "screen": {"fits": 0.90},
        "follow": {"valid": 0.90, "changed": 0.85, "kept": 0.85},
        "edit": {"exact": 0.75, "lines": 0.90},
    }
    for domain, demands in bounds.items():
        if domain not in figures["domains"]:
            continue  # the pair was made before the corpus had it
        checks = figures["domains"][domain].get("checks", {})
        for check, bound in demands.items():
            yield at_least(f"Q {domain} {check}", checks.get(check, 0.0), bound)
    domains = figures["domains"]
    yield at_least("Q4 answers that end by themselves", min(d["ended"] for d in domains.values()), 1.0)
    for name, domain in domains.items():
        yield at_most(f"Q4 {name}: loss in a second turn", domain["checks"]["all"] - domain["second_turn"]["all"], 0.05)
    for headline in figures["headlines"]:
        yield at_least(f"Q headline passes: {headline['prompt']}", float(all(headline["checks"].values())), 1)
    yield at_least("Q5 different pages of 5 at T=0.8", figures["variation"]["different"], 3)
    yield at_least("Q5 valid pages of 5 at T=0.8", figures["variation"]["valid"], 4)


def _lossless(figures: dict[str, Any]) -> Iterator[Criterion]:
    worst = min(share for domain in figures["domains"].values() for share in domain["identical"].values())
    yield at_least("L1 identical to plain decoding (batched, this device)", worst, 1.0)


def _acceptance(figures: dict[str, Any]) -> Iterator[Criterion]:
    domains = figures["domains"]
    tau = {name: domain["unseen"]["tau"] for name, domain in domains.items()}
    small_talk = [tau[name] for name in ("chat", "unknown") if name in tau]
    tau["chat"] = sum(small_talk) / max(len(small_talk), 1)
    bands = {"code": (5, 11), "html": (5, 12), "maths": (3.5, 8), "explain": (2, 6), "chat": (1.8, 5)}
    measured = {name: tau.get(name, 0.0) for name in bands}
    yield within("T1 mean tau of five domains", sum(measured.values()) / len(measured), 4.0, 8.5)
    for name, (low, high) in bands.items():
        yield within(f"T1 tau {name}", measured[name], low, high)
    crafted, prose = (measured["code"] + measured["html"]) / 2, (measured["explain"] + measured["chat"]) / 2
    yield at_least("T1 gap of code and html over maths", crafted - measured["maths"], 0.5)
    yield at_least("T1 gap of maths over prose", measured["maths"] - prose, 0.5)
    for name, bound in {"code": 0.5, "html": 0.5, "maths": 0.2, "explain": 0.1, "chat": 0.1, "unknown": 0.1}.items():
        if name in domains:
            yield at_most(f"T2 full cycles {name}", domains[name]["unseen"]["full"], bound)
    yield at_least("T2 code cycles of two tokens or fewer", domains["code"]["unseen"]["short"], 0.05)
    for name, domain in domains.items():
        sampled, greedy = domain["sampled"]["tau"], domain["held_out"]["tau"]
        if name in COPIED:  # copied text is as sure at any temperature
            yield at_least(f"T3 tau {name} at T=1", sampled, 1.2)
        else:
            yield within(f"T3 tau {name} at T=1", sampled, 1.2, greedy)
        if domain["seen"]:
            yield at_most(f"T3 gap seen over unseen {name}", domain["seen"]["tau"] - domain["unseen"]["tau"], 5)
    for headline in figures["headlines"]:
        yield within(f"T4 tau: {headline['prompt']}", headline["tau"], 4, 13)
