"""What the alignment layer names: one changed fact is a flag, the same fact in other words is none."""

from __future__ import annotations

import pytest

from marg_ray.grounding.languages import language_checked
from marg_ray.grounding.verify import Check, check_sentence
from marg_ray.records import Evidence, Verdict


def check(text: str, *quotes: str, titles: tuple[str, ...] = ()) -> Check:
    cited = [Evidence(id=f"e{n}", source="s1", quote=q, start=0, end=len(q)) for n, q in enumerate(quotes)]
    return check_sentence(text, cited, titles=titles)


def kinds(text: str, *quotes: str) -> set[str]:
    return {c.kind for c in check(text, *quotes).complaints}


@pytest.mark.parametrize(
    ("quote", "faithful", "changed", "kind"),
    [
        # negation, in several forms
        ("The council approved the plan in March.", "In March the council approved the plan.",
         "The council never approved the plan in March.", "negation"),
        ("The council approved the plan in March.", "The plan was approved by the council in March.",
         "The council failed to approve the plan in March.", "negation"),
        ("The council did not approve the plan.", "The council failed to approve the plan.",
         "The council approved the plan.", "negation"),
        ("The ship sailed with a full crew.", "With a full crew the ship sailed.",
         "The ship sailed without a full crew.", "direction"),
        ("The firm was able to repay its loans.", "The firm was able to pay back its loans.",
         "The firm was unable to repay its loans.", "direction"),
        ("The bridge was not only long but also costly to build.", "The bridge was long and costly to build.",
         "The bridge was cheap to build and long.", "direction"),
        # direction: verbs, adjectives, adverbs, small words
        ("The emperor released the captured nobles after the war.", "After the war the emperor released the nobles.",
         "After the war the emperor imprisoned the nobles.", "direction"),
        ("The deeper harbour serves larger vessels.", "Larger vessels are served by the deeper harbour.",
         "The deeper harbour serves smaller vessels.", "direction"),
        ("She moved from Lyon to Turin in her youth.", "In her youth she moved from Lyon to Turin.",
         "She moved from Turin to Lyon in her youth.", "roles"),
        ("The road runs above the river near the mill.", "Near the mill the road runs above the river.",
         "Near the mill the road runs below the river.", "direction"),
        # roles
        ("Arsenal defeated Chelsea in the final.", "Chelsea was defeated by Arsenal in the final.",
         "Chelsea defeated Arsenal in the final.", "roles"),
        ("Arsenal defeated Chelsea in the final.", "In the final, Arsenal defeated Chelsea.",
         "Arsenal was defeated by Chelsea in the final.", "roles"),
        ("Lake Ladoga is larger than Lake Onega.", "Lake Ladoga is larger than its neighbour Lake Onega.",
         "Lake Onega is larger than Lake Ladoga.", "roles"),
        ("The treaty was signed by France and Spain.", "The treaty was signed by Spain and France.",
         "The treaty was signed by France without Spain.", "negation"),
        ("The drought caused a famine in the valley.", "A famine in the valley was caused by the drought.",
         "A famine caused the drought in the valley.", "roles"),
        ("The soldiers chased the farmers across the fields.", "The farmers were chased by the soldiers.",
         "The farmers chased the soldiers across the fields.", "roles"),
        # units and figures
        ("The canal is 16 km long.", "The canal is about 10 miles long.", "The canal is 16 miles long.", "unit"),
        ("The canal is five miles long.", "The canal is 5 miles long.", "The canal is five kilometres long.", "unit"),
        ("The oven reaches 250 °C at most.", "At most the oven reaches 482 °F.", "The oven reaches 250 °F at most.",
         "unit"),
        ("The firm paid $3 million for the mill.", "The firm paid 3 million dollars for the mill.",
         "The firm paid €3 million for the mill.", "unit"),
        ("Turnout rose by 3 percentage points.", "By 3 percentage points turnout rose.", "Turnout rose by 3 percent.",
         "unit"),
        ("One hundred and five boats took part in the race.", "105 boats took part in the race.",
         "One hundred and six boats took part in the race.", "number word"),
        ("The tower has 12 bells and 30 windows.", "The tower has twelve bells and thirty windows.",
         "The tower has 30 bells and 12 windows.", "number"),
        # dates
        ("The fair was held on a Tuesday in June.", "The fair took place on a Tuesday in June.",
         "The fair was held on a Friday in June.", "date"),
        ("He was born in 1950 and died in 1990.", "He was born in 1950, and he died in 1990.",
         "He was born in 1990 and died in 1950.", "date"),
        ("The gala was held in Rome on 3 May. The prize was given on 9 June.", "On 9 June the prize was given.",
         "The prize was given on 3 May.", "date"),
        ("The call came at 09:15 on Monday.", "On Monday the call came at 09:15.", "The call came at 09:45 on Monday.",
         "date"),
        # names that are in the passages, but elsewhere
        ("Anna Berg led the orchestra in Oslo. Karl Lund wrote the programme.", "Anna Berg led the orchestra in Oslo.",
         "Karl Lund led the orchestra in Oslo.", "name"),
        ("Edwards Vacuum moved to Crawley. In Leeds, Edwards Air closed.", "Edwards Vacuum relocated to Crawley.",
         "Edwards Air moved to Crawley.", "name"),
        # both sides turned say the same
        ("Lake Ladoga is larger than Lake Onega.", "Lake Onega is smaller than Lake Ladoga.",
         "Lake Ladoga is smaller than Lake Onega.", "direction"),
        ("Acme acquired Beta from Gamma in March.", "Gamma sold Beta to Acme in March.",
         "Acme sold Beta to Gamma in March.", "direction"),
        ("The filter absorbs green light and reflects blue light.", "It absorbs green light and reflects blue light.",
         "The filter absorbs blue light and reflects green light.", "roles"),
        ("It left hours before the storm, and came back after it passed.", "It left hours before the storm.",
         "It left hours after the storm, and came back after it passed.", "direction"),
        # bounds
        ("The hall seats up to 900 guests.", "Up to 900 guests find seats in the hall.",
         "The hall seats at least 900 guests.", "direction"),
        # negation left out or put in between the same words
        ("The area was more crowded than usual, not least in May.", "Not least in May it was more crowded.",
         "The area was not more crowded than usual, not least in May.", "negation"),
        ("The sale did not include the mill.", "The mill was not included in the sale.",
         "The sale did include the mill.", "negation"),
        # a verb and its negated opposite, and what a clause after "that" is about
        ("The council rejected the plan as the costs were too high.", "The council did not accept the plan.",
         "The council accepted the plan as the costs were too high.", "direction"),
        ("The senator denied that he had met the envoy.", "The senator denied meeting the envoy.",
         "The senator had met the envoy.", "denial"),
        ("Rain triggered landslides that blocked the road.", "Landslides were triggered by rain.",
         "Landslides triggered rain that blocked the road.", "roles"),
        ("The costs rose because the council rejected the plan.", "Because the council rejected the plan, costs rose.",
         "The council rejected the plan because the costs rose.", "roles"),
        # steps of one kind
        ("The bridge carries 900 carts a day.", "Every day the bridge carries 900 carts.",
         "The bridge carries 900 carts a week.", "quantifier"),
        # figures that changed places
        ("Prices fell from 8 percent in 2012 to 5 percent in 2016.", "Prices fell from 8 to 5 percent by 2016.",
         "Prices fell from 8 percent in 2016 to 5 percent in 2012.", "date"),
        # extent
        ("Some members of the crew left the ship early.", "Early on some members of the crew left the ship.",
         "Most members of the crew left the ship early.", "quantifier"),
    ],
)  # fmt: skip
def test_a_changed_fact_is_a_flag_and_a_paraphrase_is_none(quote: str, faithful: str, changed: str, kind: str) -> None:
    assert check(faithful, quote).complaints == ()
    assert kind in kinds(changed, quote), check(changed, quote)
    assert check(changed, quote).verdict is not Verdict.SUPPORTED


def test_a_no_about_something_else_in_another_passage_is_no_contradiction() -> None:
    text = "Tidal turbines need no dam and turn slowly."
    quotes = ("Tidal turbines turn slowly, at a few turns a minute.", "Unlike barrages, tidal turbines need no dam.")
    assert check(text, *quotes).complaints == ()
    assert check(text, *reversed(quotes)).complaints == ()
    assert "negation" in kinds("Tidal turbines need a dam.", quotes[1])
    assert check("Tidal turbines turn slowly.", *quotes).complaints == ()


def test_a_flag_is_withdrawn_where_a_cited_sentence_says_it() -> None:
    text = "Output rose in the northern basin."
    rose, fell = "Output rose in the northern basin in 2020.", "Output fell in the northern basin in 2021."
    assert check(text, fell, rose).complaints == ()
    assert "direction" in kinds(text, fell)


def test_complaints_name_their_words() -> None:
    found = check("Chelsea defeated Arsenal in the final.", "Arsenal defeated Chelsea in the final.")
    assert "Chelsea" in found.reason
    assert "Arsenal" in found.reason


@pytest.mark.parametrize(
    ("text", "quote", "good"),
    [
        ("Die Stadt hat 1.234,5 Hektar Wald.", "Die Stadt hat 1.234,5 Hektar Wald und zwei Seen.", True),
        ("Die Stadt hat 1.234,7 Hektar Wald.", "Die Stadt hat 1.234,5 Hektar Wald und zwei Seen.", False),
        ("La ville de Lyon compte 522 000 habitants.", "La ville de Lyon compte 522 000 habitants en 2020.", True),
        ("La ville de Nice compte 522 000 habitants.", "La ville de Lyon compte 522 000 habitants en 2020.", False),
        ("El puente de Bilbao mide 45 metros.", "El puente de Bilbao mide 45 metros y no tiene peaje.", True),
        ("El puente de Bilbao mide 54 metros.", "El puente de Bilbao mide 45 metros y no tiene peaje.", False),
        ("Мост в Казани построен в 1967 году.", "Мост в Казани построен в 1967 году инженером Орловым.", True),
        ("Мост в Самаре построен в 1967 году.", "Мост в Казани построен в 1967 году инженером Орловым.", False),
        ("بلغ طول الجسر ٤٥ مترا.", "بلغ طول الجسر 45 مترا في المدينة.", True),
        ("بلغ طول الجسر ٥٤ مترا.", "بلغ طول الجسر 45 مترا في المدينة.", False),
        ("该市人口为120万人。", "据统计，该市人口为120万人。", True),
        ("该市人口为120亿人。", "据统计，该市人口为120万人。", False),
        ("人口は1億2000万人である。", "日本の人口は1億2000万人である。", True),
        ("人口は2億2000万人である。", "日本の人口は1億2000万人である。", False),
        ("ロンドンの橋は長さ45メートルである。", "パリの橋は長さ45メートルである。", False),
    ],
)
def test_figures_and_names_are_checked_in_other_languages(text: str, quote: str, good: bool) -> None:
    assert (not check(text, quote).complaints) is good, check(text, quote)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("Der Mann war fast die ganze Zeit in Bonn.", "In Bonn war der Mann langsam die ganze Zeit."),
        ("Le pont est plus vieux sans doute.", "Sans doute le pont est plus vieux, pas neuf."),
        ("No hay mercado en Toledo.", "En Toledo no hay mercado."),
        ("Мост не открыт.", "Мост не открыт для машин."),
    ],
)
def test_english_rules_are_silent_in_other_languages(text: str, quote: str) -> None:
    assert not kinds(text, quote) & {"negation", "direction", "roles", "quantifier"}, check(text, quote)


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("Output fell.", True),
        ("The bridge in Kraków was opened by the mayor.", True),
        ("Der Ausstoß sank um 3,5 %.", False),
        ("Le barrage est fermé depuis 1966.", False),
        ("La presa de Toledo no funciona.", False),
        ("La diga è stata chiusa nel 1966.", False),
        ("Плотина закрыта.", False),
        ("大坝已经关闭。", False),
        ("أغلق السد في عام 1966.", False),
        ("1966: 540 GWh", True),
    ],
)
def test_the_language_is_told(text: str, english: bool) -> None:
    assert language_checked(text) is english


COPIES = [
    ("name", "Biologist David Newstead said that predators would eat a dead bird on the flats within an hour.",
     "Biologist Texas said that predators would eat a dead bird on the flats within an hour."),
    ("name", "Note that aptitude is not the tool for upgrades from one Debian release to another.",
     "Note that aptitude is not the tool for upgrades from one Release Notes release to another."),
    ("name", "For upgrades between releases you should read the Release Notes.",
     "For upgrades between releases you should read the Debian."),
    ("number", "package: debsums; popcon: V:5, I:41; description: utility to verify installed files.",
     "package: debsums; popcon: V:4, I:41; description: utility to verify installed files."),
    ("number", "But the package in testing was installable, as the gcc4 packages had not come down to testing.",
     "But the package in testing was installable, as the gcc3 packages had not come down to testing."),
    ("figure", "It is the first privately owned submersible with an intended depth of 4,000 m (13,000 ft).",
     "It is the first privately owned submersible with an intended depth of 4007 m (13000 ft)."),
    ("negation", "Currently, Debian is only available for Linux, but we have started to offer other systems.",
     "Currently, Debian is not only available for Linux, but we have started to offer other systems."),
]  # fmt: skip
BESIDE = (
    " Note that aptitude is not for upgrades from one Debian release to another, read it or not. Texas said so. "
    "For upgrades read the Release Notes. package: chkrootkit; popcon: V:4, I:20. "
    "Then came the change from gcc3 to gcc4."
)


@pytest.mark.parametrize(("kind", "quote", "copy"), COPIES, ids=[c[0] for c in COPIES])
def test_what_is_changed_in_a_copy_is_a_flag(kind: str, quote: str, copy: str) -> None:
    assert kind in kinds(copy, quote + BESIDE)
    assert kinds(quote, quote + BESIDE) == set()
    assert kind not in kinds(copy, quote + BESIDE, copy), "another passage has it as it stands"


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("President Joe Biden signed the bill on climate in the garden of the White House.",
         "Joe Biden signed the bill on climate in the garden of the White House."),
        ("The United States signed the treaty on fishing in the northern seas last year.",
         "The US signed the treaty on fishing in the northern seas last year."),
        ("It was opened in 1966 after three years of work on the dam and the locks.",
         "La Rance was opened in 1966 after three years of work on the dam and the locks."),
    ],
)  # fmt: skip
def test_a_copy_that_names_the_same_otherwise_is_none(quote: str, said: str) -> None:
    assert "name" not in kinds(said, quote + " La Rance is a dam.")
