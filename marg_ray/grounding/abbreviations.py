"""Words whose full stop does not end a sentence, and words that start one: data for `sentences`."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name, number or further word always follows.
NEVER_LAST = _words(
    """
    dr mr mrs ms mx prof rev hon sen rep gov gen lt col sgt capt cpl cmdr adm maj pres supt st mt ft messrs mmes
    e.g i.e eg ie cf vs viz approx ca al. resp incl excl esp fig figs eq eqs sec ch chap vol vols ed eds nos pp
    par para art arts tab abb ref refs app dept univ assn bros msgr
    hr fr dipl ing bzw nr z.b d.h u.a o.ä v.a s.o s.u vgl evtl ggf sog bspw zzgl inkl ca. jh str geb gest
    mme mlle mgr mm p.ex ex env éd chap.
    sra srta dña ud uds núm pág págs cap aprox ee ej p.ej
    sig dott ing. pag n° nº
    """
)
# May close a sentence; then the next word tells.
MAY_BE_LAST = _words(
    """
    inc ltd co corp llc plc gmbh bros jr sr esq etc al u.s u.k u.n e.u u.s.a u.a.e d.c a.m p.m am pm b.c a.d b.c.e c.e
    ph.d m.d b.a m.a b.sc m.sc ave blvd rd est dist usw u.s.w etc. min max sq oz lb lbs hrs mins secs yr yrs
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
    mio mrd mill bn mn tsd av s.a s.l s.r.l dic ene abr ago janv févr avr juil déc cie
    """
)
BEFORE_NUMBER = _words("no nos nr p pp s n c ca v art vol fig § pos lit bd num op kap kl")

MONTHS = _words(
    """
    januar februar märz april mai juni juli august september oktober november dezember jänner feber
    jan feb mrz apr jun jul aug sep sept okt nov dez leden únor březen duben květen červen
    january february march may june july october december jahrhundert jahrhunderts weltkrieg weltkriegs
    januari februari maart mei juni juli augustus januar februar mars marts oktober desember
    """
)
GERMAN_BEFORE_ORDINAL = _words("am dem der den das die des im vom zum beim bis ab seit und ein eine einem einen")

STARTERS = _words(
    """
    the a an this that these those it its he she they we you i his her their our my there here in on at by for from
    with without under over after before during since until while when where why how what who which whose if as
    although though because but and or so yet however moreover furthermore also then thus therefore hence meanwhile
    instead still even only many most some several few all both each every one two three four five other another
    such according today now later last next once no not more less between among despite unlike like
    der die das ein eine es er sie wir ich dies diese dieser dieses im in am an auf bei nach seit mit für von und aber
    le la les un une des il elle ils elles on ce cette ces dans en pour par avec depuis mais selon
    el los las una unos esto este esta estos estas lo su sus para por con desde pero según
    """
)
