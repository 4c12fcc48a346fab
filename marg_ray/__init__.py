"""Research reports whose every sentence can be checked.

>>> from marg_ray import research
>>> report = research("How do tides make power?", docs=["papers/"], offline=True)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marg_ray.errors import (
    AddressBlocked,
    BudgetExceeded,
    BudgetStopped,
    ContextOverflow,
    DecisionConflict,
    FetchFailed,
    InsufficientEvidence,
    KeyReused,
    MargError,
    ModelError,
    ModelUnavailable,
    OutputCut,
    ParseError,
    RuntimeUnavailable,
    SearchUnavailable,
    SessionCancelled,
    SessionHalted,
    SessionMoved,
    SessionNotFound,
    SourceError,
    StaleEpoch,
    StoreConflict,
    StoreUnavailable,
    TooBusy,
    Unreadable,
    UsageError,
)

if TYPE_CHECKING:
    from marg_ray.client import Marg, research
    from marg_ray.records import Limits
    from marg_ray.report.model import Report
    from marg_ray.settings import Settings

_LAZY = {
    "Limits": "marg_ray.records",
    "Marg": "marg_ray.client",
    "Report": "marg_ray.report.model",
    "Settings": "marg_ray.settings",
    "research": "marg_ray.client",
}

__all__ = [
    "AddressBlocked",
    "BudgetExceeded",
    "BudgetStopped",
    "ContextOverflow",
    "DecisionConflict",
    "FetchFailed",
    "InsufficientEvidence",
    "KeyReused",
    "Limits",
    "Marg",
    "MargError",
    "ModelError",
    "ModelUnavailable",
    "OutputCut",
    "ParseError",
    "Report",
    "RuntimeUnavailable",
    "SearchUnavailable",
    "SessionCancelled",
    "SessionHalted",
    "SessionMoved",
    "SessionNotFound",
    "Settings",
    "SourceError",
    "StaleEpoch",
    "StoreConflict",
    "StoreUnavailable",
    "TooBusy",
    "Unreadable",
    "UsageError",
    "research",
]


def __getattr__(name: str) -> Any:
    """What is heavy to import comes when it is first used."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
