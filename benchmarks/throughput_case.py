"""What every system of `throughput.py` is asked: distinct questions, one outline, three sub-queries to a section."""

from __future__ import annotations

from dataclasses import dataclass

SECTIONS = ("Background", "Present state", "Figures and costs", "Effects", "Risks and limits")
ANGLES = ("overview", "examples", "evidence")
WORDS = 400  # of a section: what a standard report of five equal sections gives each
READS = 8  # documents that are read for a section

_FRAMES = ("What is known about the {} of {}?", "What do the sources say on the {} of {}?")
_ASPECTS = ("environmental effects", "costs", "energy output", "history", "construction", "operation", "turbines")
_THINGS = (
    "tidal barrages",
    "tidal lagoons",
    "tidal stream turbines",
    "the La Rance station",
    "the Sihwa Lake station",
    "the Annapolis Royal station",
    "the Swansea Bay lagoon",
)


@dataclass(frozen=True)
class Case:
    """One question. No two cases share a question or a sub-query with another of the same frame."""

    question: str
    topic: str

    def queries(self, section: str) -> tuple[str, ...]:
        """The sub-queries of a section."""
        return tuple(f"{self.topic} {section.lower()} {angle}" for angle in ANGLES)


CASES = tuple(
    Case(frame.format(aspect, thing), f"{thing.removeprefix('the ')} {aspect}")
    for frame in _FRAMES
    for aspect in _ASPECTS
    for thing in _THINGS
)
