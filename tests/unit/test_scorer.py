"""The probability of a sentence being supported: what moves it, and that what ships fits this version."""

from __future__ import annotations

import json
import math
from importlib.resources import files

import pytest

from marg_ray.grounding.features import FALLING, NAMES, RISING
from marg_ray.grounding.scorer import FILE, Scorer, Tree, from_json, scorer
from marg_ray.grounding.verify import check_sentence, features_of
from marg_ray.records import Evidence, Verdict

PASSAGE = (
    "The La Rance station was opened in 1966 near Saint-Malo. Its 24 turbines have a capacity of 240 megawatts. "
    "Fish passed the barrage with a mortality of 4 to 10 percent, according to the operator."
)
EVIDENCE = [Evidence(id="e1", source="s1", quote=PASSAGE, start=0, end=len(PASSAGE))]


def likely(text: str) -> float:
    found = check_sentence(text, EVIDENCE).probability
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("Opened in 1966, La Rance has 24 turbines.", "Opened in 1976, La Rance has 24 turbines."),
        ("La Rance has a capacity of 240 megawatts.", "La Rance has a capacity of 420 megawatts."),
        ("The station near Saint-Malo was opened in 1966.", "The station near Bordeaux was opened in 1966."),
        ("The station was opened in 1966.", "The station was not opened in 1966."),
        ("La Rance was opened in 1966.", "Sediment fills the basin of La Rance faster every year."),
    ],
)
def test_a_true_statement_is_likelier_than_its_false_twin(true: str, false: str) -> None:
    assert likely(true) > 0.5 > likely(false)


def test_a_quotation_is_certain_and_a_sentence_without_sources_is_not_scored() -> None:
    assert likely("The La Rance station was opened in 1966 near Saint-Malo.") == 1.0
    assert check_sentence("La Rance was opened in 1966.", []).probability is None
    heading = check_sentence("What follows is an overview of the main points.", EVIDENCE)
    assert heading.verdict is not Verdict.NOT_FACTUAL or heading.probability is None


def test_a_probability_never_lifts_a_flag() -> None:
    found = check_sentence("The La Rance station was opened in 1966 near Saint-Malo, with 25 turbines.", EVIDENCE)
    assert found.verdict not in (Verdict.SUPPORTED, Verdict.PARTIAL)


def test_features_are_as_many_as_their_names_and_move_the_score_one_way_only() -> None:
    for text in ("La Rance was opened in 1966 and has 24 turbines.", "Nothing here.", "Ähnliches gilt für 240 MW."):
        given = features_of(text, EVIDENCE)
        assert given is not None
        score, x = given
        assert len(x) == len(NAMES)
        assert all(math.isfinite(v) for v in x)
        here = scorer()(score, x)
        assert 0 <= here <= 1
        for place, direction in enumerate(NAMES.values()):
            if direction in (RISING, FALLING):
                more = [v + 0.5 * (n == place) for n, v in enumerate(x)]
                assert direction * (scorer()(score, more) - here) >= -1e-9, list(NAMES)[place]


def test_a_file_of_other_features_is_refused() -> None:
    body = json.loads(files("marg_ray.grounding").joinpath(FILE).read_text("utf-8"))
    assert from_json(body).trees
    with pytest.raises(ValueError, match="train_verifier"):
        from_json({**body, "features": body["features"][:-1]})


def test_trees_are_walked_as_they_were_grown() -> None:
    tree = Tree(feature=(1, -1, -1), threshold=(0.5, 0.0, 0.0), left=(1, 0, 0), right=(2, 0, 0), value=(0.0, -2.0, 3.0))
    assert (tree([9.0, 0.5]), tree([9.0, 0.51])) == (-2.0, 3.0)
    flat = Scorer((tree,), base=1.0, slope=1.0, shift=0.0)
    assert flat.raw(0.62, [0.0, 1.0]) == pytest.approx(2.0)
    assert flat(0.62, [0.0, 1.0]) == pytest.approx(1 / (1 + math.exp(-2.0)))
