"""English adjectives, adverbs and nouns that turn a statement round, in base forms: data for `opposites`.

A line has two sides; every word of one side is an opposite of every word of the other. A line that is indented more
goes on with the one before.
"""

from __future__ import annotations

ADJECTIVES = """
    high | low
    large big huge great vast enormous giant massive sizable | small little tiny minor slight minute miniature
    long | short brief
    tall | short
    many numerous | few
    more greater higher | less fewer lower
    most highest largest biggest greatest maximum | least lowest smallest minimum fewest
    best finest | worst
    better superior | worse inferior
    good excellent | bad poor terrible
    positive | negative
    strong powerful mighty | weak feeble
    hot warm | cold cool
    fast quick rapid swift speedy | slow sluggish gradual
    old aged elderly | young
    old ancient | new modern recent
    early | late
    former previous | current present
    first | last final
    first | second
    upper top | lower bottom
    northern north | southern south
    eastern east | western west
    northeast northeastern north-eastern | southwest southwestern northwest northwestern southeast southeastern
    northwest northwestern | southeast southeastern northeast northeastern southwest southwestern
    northward northwards | southward southwards
    eastward eastwards | westward westwards
    left | right
    left-wing leftist liberal | right-wing rightist conservative
    public state-owned governmental | private
    legal lawful licit | illegal unlawful illicit
    safe harmless | unsafe dangerous hazardous risky harmful perilous
    rich wealthy affluent prosperous | poor impoverished needy destitute
    cheap inexpensive affordable | expensive costly
    common frequent widespread usual | rare uncommon infrequent scarce unusual
    possible feasible | impossible infeasible
    guilty | innocent
    alive living | dead deceased extinct
    natural | artificial synthetic
    voluntary optional | mandatory compulsory obligatory
    temporary provisional | permanent lasting
    domestic | foreign
    local | global
    national | international
    urban | rural
    internal inner interior | external outer exterior
    indoor | outdoor
    vertical | horizontal
    senior | junior
    major | minor
    main primary | secondary subordinate
    full complete entire | empty partial incomplete
    heavy | light
    thick | thin
    fat | thin slim lean
    wide broad | narrow
    deep | shallow
    hard | soft easy
    difficult tough challenging | easy simple effortless
    complex complicated intricate | simple
    bright | dark dim
    light | dark
    white | black
    dry arid | wet moist damp humid
    clean pure | dirty polluted impure
    sharp | blunt dull
    smooth | rough
    loud noisy | quiet silent
    sweet | bitter sour
    tight | loose
    flexible | rigid stiff inflexible
    rigid | elastic
    fertile | barren infertile
    hostile unfriendly | friendly
    friendly | unfriendly
    happy glad joyful | sad unhappy miserable
    optimistic | pessimistic
    generous | stingy
    brave courageous bold | cowardly timid
    polite | rude impolite
    kind gentle | cruel harsh brutal
    honest truthful | dishonest deceitful
    loyal faithful | disloyal treacherous
    proud | humble ashamed
    wise clever smart intelligent | foolish stupid
    beautiful handsome attractive | ugly
    true correct right accurate | false incorrect wrong inaccurate
    real genuine authentic | fake false counterfeit
    successful | unsuccessful failed
    famous well-known renowned prominent | unknown obscure
    popular | unpopular
    important significant crucial essential | unimportant insignificant trivial negligible
    necessary required | unnecessary
    useful | useless
    effective | ineffective
    favourable favorable | unfavourable unfavorable adverse
    beneficial advantageous | harmful detrimental
    active | inactive passive dormant
    conscious | unconscious
    visible | invisible
    stable steady | unstable volatile
    constant | variable changing
    equal | unequal
    similar alike identical | different dissimilar distinct
    same | different opposite
    simultaneous | separate
    direct | indirect
    formal | informal
    official | unofficial
    regular | irregular
    normal ordinary usual | abnormal extraordinary unusual
    strict | lenient lax
    democratic | undemocratic authoritarian autocratic
    peaceful | violent warlike
    civilian | military
    religious sacred | secular profane
    male masculine | female feminine
    single unmarried | married
    innocent | guilty
    near close nearby adjacent | far distant remote
    parallel | perpendicular
    convex | concave
    acute | chronic obtuse
    benign | malignant
    explicit | implicit
    abstract | concrete
    absolute | relative
    subjective | objective
    theoretical | practical
    general broad | specific particular
    general | special
    collective | individual
    individual | joint
    unanimous | divided
    majority | minority
    odd | even
    maximum maximal | minimum minimal
    abundant plentiful ample | scarce
    surplus | deficit
    dense crowded | sparse
    flat | steep hilly
    straight | curved crooked bent
    raw | cooked
    fresh | stale rotten
    ripe | unripe
    edible | poisonous toxic
    toxic poisonous | harmless
    aggressive | passive defensive
    offensive | defensive
    progressive | regressive conservative
    radical extreme | moderate
    liberal | conservative
    royalist | republican
    ancient prehistoric | modern contemporary
    initial original | final
    upstream | downstream
    uphill | downhill
    clockwise | anticlockwise counterclockwise
    inbound incoming | outbound outgoing
    ascending | descending
    upward upwards | downward downwards
    forward forwards | backward backwards
    onshore | offshore
    inland | coastal
    overseas abroad | domestic home
    online | offline
    dominant | recessive
    herbivorous | carnivorous
    nocturnal | diurnal
    deciduous | evergreen
    aerobic | anaerobic
    organic | inorganic
    solid | liquid
    open | closed
    armed | unarmed
    paid | unpaid
    wanted | unwanted
    finished | unfinished
    damaged | undamaged intact unharmed
    commercial profitable lucrative | unprofitable
    critical | favourable favorable complimentary
    sceptical skeptical doubtful | convinced certain
    certain sure | uncertain doubtful
    likely probable | unlikely improbable
    willing eager | unwilling reluctant
    able capable | unable incapable
    rising growing increasing | falling declining decreasing shrinking
    leading winning | losing trailing
    tropical | polar
    vocal | instrumental
    live | recorded
    amateur | professional
    fictional | factual real
    mortal | immortal
    sunny | cloudy rainy
    elite | common
    hereditary | elective
    continuous uninterrupted | intermittent interrupted
    reversible | irreversible
    renewable | exhaustible
    uniform | varied diverse
    mixed | positive
    mixed | negative
    favourite | underdog
    sweeping | limited
    unlimited infinite endless | limited finite
    spacious | cramped
    lengthy | brief
    monthly | weekly
    daily | yearly
    weekly | annual
    annual yearly | monthly
    lowest | highest
    heavily | lightly
"""

OTHERS = """
    rise growth increase gain upturn boom expansion | fall decline decrease loss downturn bust reduction drop recession
        slump
    success victory triumph | failure defeat
    profit | loss
    acceptance approval adoption | rejection refusal disapproval
    support | opposition resistance
    supporter proponent advocate ally | opponent critic adversary enemy
    friend ally | enemy foe rival
    beginning start outset opening | end finish close conclusion
    birth | death
    arrival | departure
    entrance entry | exit
    creation construction | destruction demolition abolition
    import | export
    demand | supply
    asset | liability
    income revenue | expenditure expense
    creditor lender | debtor borrower
    buyer purchaser customer | seller vendor
    winner victor champion | loser
    employer | employee
    teacher | student pupil
    master | servant slave
    landlord | tenant
    host | guest visitor
    parent | child
    father | mother
    son | daughter
    brother | sister
    husband | wife
    uncle | aunt
    nephew | niece
    grandfather | grandmother
    grandson | granddaughter
    king | queen
    prince | princess
    boy | girl
    man | woman
    men | women
    actor | actress
    ancestor predecessor | descendant successor
    predecessor | successor
    strength | weakness
    advantage benefit | disadvantage drawback
    increase | reduction
    majority | minority
    plaintiff | defendant
    prosecution | defence defense
    attacker | defender
    offence offense | defence defense
    war | peace
    truth fact | lie falsehood myth
    hope optimism | despair pessimism
    love | hatred hate
    praise acclaim | criticism condemnation
    heaven | hell
    summer | winter
    spring | autumn fall
    day | night
    daytime | nighttime
    dawn sunrise | dusk sunset
    morning | evening afternoon
    noon midday | midnight
    north | south
    east | west
    ceiling roof | floor
    peak summit | base foot bottom
    front | rear back
    inside interior | outside exterior
    head | tail
    peasant commoner | noble aristocrat
    democracy | dictatorship autocracy
    monarchy | republic
    freedom liberty independence | slavery captivity dependence occupation
    poverty | wealth affluence
    heat | cold
    presence | absence
    quantity | quality
    maximum | minimum
    inflation | deflation
    surplus | shortage deficit
    ascent | descent
    advance | retreat
    immigration | emigration
    immigrant | emigrant
    male males | female females
    always constantly invariably | never rarely seldom
    often frequently | rarely seldom infrequently
    usually | rarely seldom
    all every everyone everybody | none nobody
    before prior beforehand previously earlier | after following afterwards afterward later subsequently
    above over | below under beneath underneath
    inside within into | outside
    with | without
    despite | because
    for | against
    pro | anti
    up upwards | down downwards
    ahead | behind
    partly partially | fully completely wholly entirely
    immediately instantly | eventually gradually
    together jointly | separately apart alone individually
    everywhere | nowhere
    exceed exceeded | below
    upstairs | downstairs
    worldwide globally | locally
    overnight | gradually
    publicly openly | privately secretly
    nearly almost | exactly
    deliberately intentionally | accidentally unintentionally
    initially originally | finally ultimately eventually
    formerly | currently now
    barely hardly | easily
    highly | slightly poorly
    well | badly poorly
    much | little
    sooner | later
    minimum | maximum
    mainland | island
    left | right
"""
