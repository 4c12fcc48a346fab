"""The service's own keys, taken out of whatever is written down: logs, errors, answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

KEY = re.compile(r"\bmarg_([0-9a-f]{12})_([0-9a-f]{64})\b")
TELLING = re.compile(r"marg_[0-9a-f]{12}_[0-9a-f]{16}", re.IGNORECASE)  # so much of a key that it should not be there
_ANY_PART = re.compile(r"(marg(?:_|%5f)[0-9a-f]{12}(?:_|%5f))[0-9a-f]+", re.IGNORECASE)  # also as addresses write it


def masked(text: str) -> str:
    """The same text; of a key only its id is left."""
    return _ANY_PART.sub(r"\1...", text) if "marg" in text.lower() else text


def mask_logs() -> None:
    """From now on no log record of this process holds a key, whoever writes it and wherever it goes."""
    make = logging.getLogRecordFactory()
    if getattr(make, "masks_keys", False):
        return

    def masking(*args: Any, **kwargs: Any) -> logging.LogRecord:
        return _masked_record(make(*args, **kwargs))

    masking.masks_keys = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(masking)


def _masked_record(record: logging.LogRecord) -> logging.LogRecord:
    if isinstance(record.msg, str | Exception):
        record.msg = masked(str(record.msg))
    if isinstance(record.args, Mapping):
        record.args = {name: _masked_value(value) for name, value in record.args.items()}
    elif record.args:  # one by one: formatters of access logs take them apart
        record.args = tuple(_masked_value(value) for value in record.args)
    if record.exc_info and record.exc_info[0] is not None:
        record.exc_text = masked(logging.Formatter().formatException(record.exc_info))
    return record


def _masked_value(value: object) -> object:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, bool | int | float | None):
        return value
    text = str(value)
    return masked(text) if _ANY_PART.search(text) else value
