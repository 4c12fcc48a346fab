"""What every system of `throughput.py` is asked: distinct questions, one outline, three sub-queries to a section."""

from __future__ import annotations

from dataclasses import dataclass

SECTIONS = ("Background", "Present state", "Figures and costs", "Effects", "Risks and limits")
WORDS = 400  # of a section: what a standard report of five equal sections gives each
READS = 8  # documents that are read for a section

_FRAMES = {  # with what each sub-query looks for
    "What is known about the {} of {}?": ("overview", "examples", "evidence"),
    "What do the sources say on the {} of {}?": ("summary", "cases", "studies"),
}
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
    """One question. No two cases share a question or a sub-query."""

    question: str
    topic: str
    angles: tuple[str, ...]

    def queries(self, section: str) -> tuple[str, ...]:
        """The sub-queries of a section."""
        return tuple(f"{self.topic} {section.lower()} {angle}" for angle in self.angles)


CASES = tuple(
    Case(frame.format(aspect, thing), f"{thing.removeprefix('the ')} {aspect}", angles)
    for frame, angles in _FRAMES.items()
    for aspect in _ASPECTS
    for thing in _THINGS
)
