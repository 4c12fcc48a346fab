"""Words that turn a statement round: negation, opposites, hedges, quantifiers. Data for `polarity`."""

from __future__ import annotations

from marg_ray.grounding.terms import stem

NEGATIONS = frozenset(
    """
    not n't no never none neither nor without cannot nobody nothing nowhere hardly barely scarcely isn't aren't wasn't
    weren't doesn't don't didn't hasn't haven't hadn't won't wouldn't can't couldn't shouldn't mustn't
    nicht kein keine keinen keinem keiner keines nie niemals ohne weder
    pas jamais aucun aucune sans ni
    nunca ningún ninguna ninguno sin jamás tampoco
    не нет ни никогда без
    لا لم لن ليس ليست غير
    """.split()  # noqa: SIM905
)
# They negate what follows: "failed to open", "refused to sign".
DENIALS = frozenset(map(stem, "fail lack refuse deny decline cease absent unable false untrue impossible".split()))  # noqa: SIM905
WIDE_NEGATIONS = "不没未无非沒無ません ない なかった ず"

# Left against right; forms are compared by stem.
_OPPOSITES = """
    rise rose risen increase increased grow grew grown climb gain expand soar surge jump accelerate improve boost
        upward upturn raise raised | fall fell fallen decrease decreased decline drop dropped shrink shrank shrunk
        reduce plunge slump tumble slow worsen cut downward downturn lowered diminish contract
    more higher greater larger bigger longer | less fewer lower smaller shorter
    above exceed exceeded exceeds | below under
    before prior preceded earlier | after following afterwards later
    north northern | south southern
    east eastern | west western
    win won victory beat defeated | lose lost defeat
    accept accepted approve approved agree agreed pass passed | reject rejected refuse refused veto disapprove
    open opened opening reopen | close closed closing closure shut
    buy bought purchase acquire acquired | sell sold sale
    support supported back endorse favour favor | oppose opposed resist object
    allow allowed permit permitted legalise legalize enable | ban banned prohibit forbid forbade block bar outlaw
    include included | exclude excluded omit
    cause caused trigger | prevent prevented
    maximum most highest largest biggest greatest longest best | minimum least lowest smallest shortest worst
    success succeed succeeded successful | failure fail failed unsuccessful
    positive positively | negative negatively
    male men man boys | female women woman girls
    import imported | export exported
    arrive arrived enter entered join joined | leave left depart exit quit
    begin began begun start started launch launched | end ended finish finished stop stopped cease
    majority | minority
    all every | none no few
    always | never rarely seldom
    public publicly state-owned | private privately
    legal lawful | illegal unlawful
    safe safely | unsafe dangerous
    inside within indoor | outside outdoor
    rich wealthy | poor
    strong stronger strengthen strengthened | weak weaker weaken weakened
    first | last
    profit surplus | loss deficit
    hot warm warmer | cold cool cooler
    fast faster quick | slow slower
    old older oldest | young younger youngest
    ancient | modern
    early | late
    alive survived survive | dead died die killed
    cheap cheaper inexpensive | expensive costly
    common frequent | rare uncommon
    possible | impossible
    guilty convicted | innocent acquitted
    creditor | debtor
    upstream | downstream
    left-wing liberal | right-wing conservative
    natural | artificial synthetic
    add added | remove removed
    build built construct constructed | demolish demolished destroy destroyed
    create created establish founded | abolish abolished dissolve dissolved
    voluntary | mandatory compulsory obligatory
    temporary | permanent
    domestic | foreign
    urban | rural
    internal | external
    vertical | horizontal
    parent | child
    senior | junior
    major | minor
    attack attacked | defend defended
    steigen stieg gestiegen zunehmen wachsen wuchs erhöht höher mehr
        | sinken sank gesunken abnehmen fallen fiel gesenkt niedriger weniger
    augmenté augmentation hausse plus | diminué diminution baisse moins
    aumentó aumento subió más | disminuyó disminución bajó menos
"""


def _read() -> dict[str, list[tuple[int, int]]]:
    """Each stem to the (pair, side) entries it stands in."""
    sides: dict[str, list[tuple[int, int]]] = {}
    lines: list[str] = []
    for line in _OPPOSITES.strip().splitlines():
        if line.startswith("        "):
            lines[-1] += line
        else:
            lines.append(line)
    for number, line in enumerate(lines):
        for side, words in enumerate(line.split("|")):
            for word in words.split():
                entry = (number, side)
                entries = sides.setdefault(stem(word), [])
                if entry not in entries:
                    entries.append(entry)
    return sides


SIDES = _read()

HEDGES = frozenset(
    """
    may might possibly perhaps allegedly alleged reportedly rumoured rumored planned plans proposed forecast projected
    expected could potentially hypothesised hypothesized kann könnte möglicherweise geplant pourrait podría
    """.split()  # noqa: SIM905
)
QUANTIFIERS = (
    frozenset("all every each entire whole any both complete total full completely entirely fully".split()),  # noqa: SIM905
    frozenset("only sole solely exclusively just merely alone".split()),  # noqa: SIM905
    frozenset("always constantly invariably".split()),  # noqa: SIM905
)
