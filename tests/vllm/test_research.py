"""A whole `marg research` with both tiers on the real engine. So small a model writes nonsense: none of it may pass."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from typing import Any

from marg_ray.actors.assembly import Places
from marg_ray.records import ReportStatus, Verdict
from marg_ray.report.model import Report, from_json
from tests.vllm.conftest import LIBRARY, ROOT, Engine

QUESTION = "What are the environmental effects of tidal barrages?"
WITHIN_S = 1200
REFUSED, PASSED = 4, 0
_WORD, _NUMBER = re.compile(r"[^\W\d_]{4,}"), re.compile(r"\d[\d.,]*\d|\d")


async def test_a_whole_research_ends_in_a_grounded_report_or_an_honest_refusal(engine: Engine) -> None:
    code, end, err = await marg_research(engine, QUESTION)
    assert "Traceback" not in err
    if end.get("error"):
        assert (code, end["error"]["type"]) == (REFUSED, "InsufficientEvidence"), end
        return
    report = from_json(json.dumps(end["report"]))
    assert (code == PASSED) is (report.status is ReportStatus.PASSED), err
    assert engine.served.strong in report.model
    assert report.usage.tokens_out > 0, "nobody asked the engine"
    check(report, engine)


async def marg_research(engine: Engine, question: str) -> tuple[int, dict[str, Any], str]:
    """The command, attached to the Ray that serves the models: its exit code, how it ended, its messages."""
    models = engine.settings.models
    env = {
        **os.environ,
        "MARG_HOME": str(engine.settings.home),
        "MARG_MODEL": engine.settings.model,
        "MARG_MODELS__FAST": models.fast,
        "MARG_MODELS__STRONG": models.strong,
        "MARG_MODELS__BASE_URL": models.base_url,
        "MARG_MODELS__CONTEXT_TOKENS": str(models.context_tokens),
        "MARG_RUNTIME__RAY_ADDRESS": engine.ray_address,
    }
    options = ["--docs", str(LIBRARY), "--no-web", "--depth", "overview", "--max-minutes", "18", "--json"]
    command = [sys.executable, "-m", "marg_ray.cli", "research", question, *options]
    process = await asyncio.create_subprocess_exec(*command, env=env, cwd=ROOT, stdout=PIPE, stderr=PIPE)
    try:
        out, err = await asyncio.wait_for(process.communicate(), WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return process.returncode, json.loads(out.decode().splitlines()[-1]), err.decode()


def check(report: Report, engine: Engine) -> None:
    """What a reader may rely on, by rules that share nothing with the verifier."""
    snapshots = Places.of(engine.settings).snapshots
    quotes = {}
    for e in report.evidence:
        assert snapshots.text(e.source)[e.start : e.end] == e.quote
        quotes[e.id] = e.quote.lower()
    for sentence in report.sentences():
        assert set(sentence.citations) <= quotes.keys()
        if sentence.verdict is not Verdict.SUPPORTED:
            continue
        cited = " ".join(quotes[c] for c in sentence.citations)
        assert cited, f"supported by nothing: {sentence.text}"
        assert set(_NUMBER.findall(sentence.text)) <= set(_NUMBER.findall(cited)), sentence.text
        words = set(_WORD.findall(sentence.text.lower()))
        known = {word for word in words if word[:4] in cited}
        assert len(known) >= len(words) / 2, f"{sentence.text!r} is called supported by {cited!r}"
    bad = [s.text for s in report.sentences() if s.verdict in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)]
    assert not bad or report.status is not ReportStatus.PASSED, bad
