"""The JSON of a report: its schema is published and stays."""

from __future__ import annotations

import json

import jsonschema  # type: ignore[import-untyped]
import pytest
from pydantic import ValidationError

from marg_ray.records import Verdict
from marg_ray.report.assemble import build_report
from marg_ray.report.model import Report, from_json, schema, schema_text, to_json
from tests.report_sample import inputs
from tests.shared import ROOT

REPORT = build_report(inputs())

PROMISED = {
    "": "schema_version session_id question language model status summary sections references evidence sources "
    "contradictions scores issues iterations usage trace",
    "sections": "id title sentences",
    "references": "number source",
    "evidence": "id source quote start end",
    "sources": "id title location kind fetched_at",
    "summary": "text citations numbers verdict reason",
}


def test_the_published_schema_is_this_one() -> None:
    published = (ROOT / "docs" / "report.schema.json").read_text("utf-8")
    assert published == schema_text(), "run: python -m marg_ray.report.model > docs/report.schema.json"


def test_a_report_fits_its_schema_and_comes_back_the_same() -> None:
    text = to_json(REPORT)
    jsonschema.Draft202012Validator(schema()).validate(json.loads(text))
    assert from_json(text) == REPORT
    assert to_json(from_json(text)) == text


@pytest.mark.parametrize("where", PROMISED)
def test_every_promised_field_is_written(where: str) -> None:
    body = json.loads(to_json(REPORT))
    found = body[where][0] if where else body
    assert set(PROMISED[where].split()) <= set(found)


def test_usage_names_totals_and_roles() -> None:
    usage = json.loads(to_json(REPORT))["usage"]
    assert {"calls", "tokens_in", "tokens_out", "cost", "seconds", "by_role"} <= set(usage)
    assert usage["calls"] == sum(role["calls"] for role in usage["by_role"].values()) == 15


def test_the_sample_has_a_sentence_of_every_verdict() -> None:
    assert {s.verdict for s in REPORT.sentences()} == set(Verdict)


def test_figures_that_json_has_no_word_for_are_refused() -> None:
    with pytest.raises(ValidationError):
        Report.model_validate({**REPORT.model_dump(), "scores": {"accuracy": float("nan")}})


def test_fields_of_a_later_version_are_no_error() -> None:
    body = json.loads(to_json(REPORT)) | {"added_later": 1}
    assert from_json(json.dumps(body)) == REPORT
