"""English verbs and small words that turn a statement round, in base forms: data for `opposites`.

A line has two sides; every word of one side is an opposite of every word of the other. A line that is indented more
goes on with the one before.
"""

from __future__ import annotations

VERBS = """
    rise increase grow climb gain expand soar surge jump skyrocket escalate mount | fall decrease decline drop shrink
        reduce plunge slump tumble dwindle diminish plummet sink lessen dip contract subside
    accelerate hasten quicken speed | decelerate slow delay brake retard
    raise lift elevate heighten boost hoist | lower reduce cut depress
    improve ameliorate enhance recover better | worsen deteriorate impair degrade decline
    win prevail triumph gain | lose fail
    beat | lose
    accept approve adopt embrace ratify grant | reject refuse decline disapprove veto rebuff spurn deny
    agree concur consent assent | disagree dissent refuse object
    pass | fail reject
    open reopen unlock unseal | close shut lock seal
    block obstruct | open clear
    buy purchase acquire | sell
    support back endorse favour favor champion advocate defend | oppose resist object undermine
    allow permit enable authorise authorize let sanction legitimate | ban prohibit forbid block bar
        outlaw disallow prevent
    include incorporate contain | exclude omit
    cause trigger provoke induce spark | prevent avert forestall
    cause create produce | eliminate
    succeed | fail
    begin start launch commence initiate open originate | end finish stop conclude cease terminate complete close
    arrive enter join come | leave depart exit quit go withdraw
    join unite merge combine | leave separate split divide
    add attach append insert | remove detach delete subtract extract
    build construct erect assemble | demolish destroy dismantle raze wreck
    create establish found form institute | abolish dissolve disband destroy annul
    attack invade assault | defend protect
    import | export
    live survive | die perish
    bear | die
    strengthen reinforce fortify | weaken undermine
    praise laud commend applaud acclaim hail | criticise criticize condemn denounce blame censure deride
    love like adore admire | hate dislike loathe despise detest
    remember recall | forget
    give | take receive
    give offer | withhold
    send | receive
    lend | borrow
    teach | learn
    lead | follow
    push | pull
    ascend | descend
    advance progress | retreat regress
    appear emerge | disappear vanish
    reveal disclose expose uncover unveil | conceal hide cover
    confirm affirm verify corroborate prove | deny refute disprove contradict rebut
    admit confess acknowledge concede | deny
    convict | acquit
    arrest capture imprison detain jail incarcerate | release free liberate
    hire employ recruit appoint engage | fire dismiss sack discharge
    appoint elect instate nominate | remove oust depose dismiss
    employ | dismiss
    encourage urge | discourage dissuade deter
    attract | repel deter
    connect link attach | disconnect separate detach
    continue persist remain resume | stop cease discontinue halt pause
    stay remain | leave depart
    keep retain preserve maintain | lose discard abandon relinquish abolish
    save rescue | lose endanger
    save | spend waste
    earn | spend
    lengthen extend prolong | shorten curtail abbreviate
    widen broaden | narrow
    deepen | flatten
    enlarge | reduce
    inflate | deflate
    heat warm | cool chill
    freeze | melt thaw boil
    fill | empty drain
    load | unload
    sow plant | reap harvest uproot
    ask | answer
    question | answer
    attend | miss skip
    obey comply observe | disobey defy violate breach infringe flout
    help assist aid | hinder hamper impede obstruct thwart
    facilitate ease | impede complicate hinder
    simplify | complicate
    hit | miss
    catch | miss drop
    float | sink
    land | launch
    board | disembark alight
    invest | divest
    promote | demote
    promote | relegate
    overestimate exaggerate overstate | underestimate understate minimise minimize
    exceed surpass outnumber outperform | trail underperform
    maximise maximize | minimise minimize
    integrate | segregate
    centralise centralize | decentralise decentralize
    nationalise nationalize | privatise privatize
    activate | deactivate
    enable | disable
    arm | disarm
    mobilise mobilize | demobilise demobilize
    occupy | evacuate vacate
    populate | depopulate
    inhale | exhale
    absorb | emit release
    insert | withdraw
    deposit | withdraw
    sit | stand
    wake | sleep
    marry | divorce
    respect honour honor | disrespect insult
    trust believe | distrust doubt disbelieve
    satisfy please delight | dissatisfy displease disappoint annoy
    laugh | cry weep
    smile | frown
    unify unite | divide split
    harden | soften
    tighten | loosen relax slacken
    stabilise stabilize | destabilise destabilize
    calm soothe | agitate
    enrich | impoverish
    ignite | extinguish
    illuminate brighten | darken
    whiten | blacken
    precede predate antedate | succeed follow postdate
    overlook ignore neglect | notice
    ignore | consider heed
    reward | punish penalise penalize
    bless | curse
    cure heal | infect sicken
    nourish feed | starve
    relieve | burden
    contradict | confirm
    adore | abhor
    elevate | demote
    excel | fail
    reopen | close
    reunite | separate
    restore reinstate | abolish remove revoke
    renew | cancel
    schedule | cancel
    upgrade | downgrade
    tolerate | condemn
    welcome | shun
    export | import
    demand | supply
    win | surrender
    conquer | surrender
    surrender yield capitulate | resist
    abandon desert | keep
    halve | double
    multiply | divide
    forget | remember
    free | enslave
    colonise colonize | decolonise decolonize
    publish release | suppress withhold withdraw
    underline emphasise emphasize stress | downplay
"""

# Judged only where they stand in the same place of two versions of one sentence.
PLACED = """
    to into onto toward towards | from
    in inside within into | out outside
    on | off
    up | down
    before | after
    since | until
    over above | under below beneath
    with | without
    for | against
    for | despite
    because | despite although
    and | or
    more | less fewer
    least | most
    can could | cannot
    ahead | behind
    during throughout | before after
    due | despite
    thanks | despite
    he | she
    his | her
    him | her
    himself | herself
    here | there
    then | now
    defeated beat | lost
    legalised legalized | banned
    every each all | no some few
    until till | after
    between | outside
    first | last second third
    second | third fourth
    north | south east west
"""

IRREGULAR = """
    rise rose risen|fall fell fallen|grow grew grown|shrink shrank shrunk|sink sank sunk|win won|lose lost|beat beaten
    begin began begun|come came|go went gone|leave left|buy bought|sell sold|build built|give gave given|take took taken
    send sent|lend lent|teach taught|lead led|hide hid hidden|forbid forbade forbidden|keep kept|spend spent
    freeze froze frozen|bear bore born borne|forget forgot forgotten|catch caught|stand stood|sit sat|wake woke woken
    sleep slept|feed fed|split split|let let|cut cut|shut shut|hit hit|speed sped|withdraw withdrew withdrawn
    withhold withheld|overtake overtook overtaken|overthrow overthrew overthrown|uphold upheld
    undergo underwent undergone
    find found|hold held|make made|break broke broken|fly flew flown|swim swam swum|bring brought|bind bound|swear swore
    write wrote written|speak spoke spoken|see saw seen|draw drew drawn|drive drove driven|fight fought|strike struck
    meet met|pay paid|tell told|say said|think thought|know knew known|become became|choose chose chosen|eat ate eaten
    sing sang sung|run ran|set set|put put|get got gotten|wear wore worn|throw threw thrown|steal stole stolen
    spread spread|quit quit|deal dealt|die dying|lie lay lain lying|lay laid|bid bade|flee fled|seek sought|shoot shot
    slay slew slain|tear tore torn|understand understood|outdo outdid outdone|override overrode overridden|feel felt
    ride rode ridden|arise arose arisen|spring sprang sprung|swing swung|cling clung|dig dug|wind wound|fling flung
"""
