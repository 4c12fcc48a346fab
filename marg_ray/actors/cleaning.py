"""What comes from outside as data: search results and writers' answers without orders to a model."""

from __future__ import annotations

from dataclasses import replace

from marg_ray.grounding.injection import clean_hit, cut_text
from marg_ray.grounding.links import without_links
from marg_ray.records import Note
from marg_ray.sources.protocol import Found


def as_data(markdown: str, section: str) -> tuple[str, tuple[Note, ...]]:
    """A writer's answer without addresses and without orders that it repeats, and what a reader should know of it."""
    text, taken = cut_text(without_links(markdown))
    note = "the writer's answer held instruction-like text, which was cut out: " + "; ".join(i.text for i in taken)
    return text, (Note(kind="injection", text=note, section=section),) if taken else ()


def cleaned(found: Found) -> Found:
    """Search results as data: what orders a model about is cut out of titles and snippets, and noted."""
    pairs = [clean_hit(hit) for hit in found.hits]
    notes = tuple(
        Note(
            kind="injection",
            text=f"instruction-like text was cut out of the {i.where} of a search result ({hit.location}): {i.text}",
        )
        for hit, taken in pairs
        for i in taken
    )
    return replace(found, hits=tuple(hit for hit, _ in pairs), notes=(*found.notes, *notes)) if notes else found
