"""How orders to a model read: data for `injection`. Other languages than English are in `injection_languages`."""

from __future__ import annotations

import re

_I = re.IGNORECASE
# Where an order can begin: not after "to" or "they", which report one.
_ORDER = (
    r"(?:\A[\W_]*|[.!?:;,—–\-(\[\n\"“'‘«>*#]\s*|\b(?:please|now|must|should|shall|just|instead|then|also|kindly|"
    r"important|"
    r"(?:you|your task is|you (?:will|need|have|are(?: required)?|ought)) to)\s+|\byou (?:will|can|should|"
    r"must)\s+|\band\s+)"
)
_MODEL = (
    r"(?:A\.?I\.?|LLMs?|(?:large )?language models?|chat ?bots?|(?:AI|virtual|"
    r"digital) (?:assistants?|agents?|models?|systems?|"
    r"reviewers?|tools?|crawlers?)|chatgpt|gpt(?:-?\w+)?|claude|gemini|copilot|llama)"
)
_EARLIER = (
    r"(?:(?:all|any|every|each|of|the|your|my|these|those|other|previous|prior|above|earlier|preceding|past|"
    r"former|existing|"
    r"original|initial|system|safety|developer|user|foregoing|aforementioned|given|todas?|las|toutes|les|alle|tutte|"
    r"le|die)\s+){1,5}"
)
_INSTRUCTIONS = (
    r"(?:instructions?|prompts?|directions?|directives?|rules?|guidelines?|commands?|programming|training|messages?|"
    r"constraints?|restrictions?|policies|context|guardrails?)"
)
_CONDITION = r"(?!.{0,20}\b(?:if|unless|when|for (?:older|newer|version|users?|windows|linux|mac))\b)"

RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, _I))
    for name, pattern in (
        (
            "override",
            rf"{_ORDER}(?:ignore|disregard|forget|override|bypass|discard|neglect|do not (?:follow|obey)|"
            rf"don['’]t (?:follow|obey)|"
            rf"stop (?:following|obeying))\s+{_EARLIER}{_INSTRUCTIONS}\b(?:\s+(?:above|before|given|"
            rf"so far))?{_CONDITION}",
        ),
        (
            "override",
            rf"{_ORDER}(?:ignore|disregard|forget)\s+(?:everything|anything|all(?: that)?|what(?:ever)?)\s+"
            r"(?:(?:you (?:were|have been|are) (?:told|instructed|given))|(?:written |said )?(?:above|"
            r"before this|prior to this))\b",
        ),
        (
            "role",
            rf"\b(?:as|if you(?:['’]re| are)|since you(?:['’]re| are)|you(?:['’]re|"
            rf" are)(?: now)?) (?:an? |the )?(?:\w+ )?{_MODEL}\b"
            r".{0,80}\b(?:you (?:must|should|need to|have to|are (?:required|instructed|asked|to)|will|shall|"
            r"may not|cannot)|"
            r"please|ignore|output|respond|reply|include|recommend|rate|say|write)\b",
        ),
        (
            "role",
            r"\b(?:you are now|from now on,? you (?:are|will|must)|act as|pretend (?:to be|you are)|switch to|"
            r"enter)\b.{0,30}"
            r"\b(?:DAN|jailbr\w+|developer mode|unrestricted|unfiltered|no restrictions|"
            r"without (?:any )?restrictions|root access|"
            r"admin(?:istrator)? mode|god mode)\b",
        ),
        (
            "address",
            rf"(?:\A[\W_]*|\n\s*|[.!?]\s+)(?!(?:dear|hey|hello|hi)\s+(?:claude|gemini|llama|copilot)\b)"
            rf"(?:dear|attention|hey|hello|hi|note (?:to|for)|message (?:to|for)|"
            rf"instructions? (?:to|for)|"
            rf"important (?:note|message|instructions?)? ?(?:to|for)|to (?:any|all|every|"
            rf"the))\s*:?\s*(?:any |all |the |every )*{_MODEL}"
            r"\b[^.!?]{0,60}(?:[:,!—-]|\breading\b|\bprocessing\b|\bsummari[sz]ing\b)",
        ),
        (
            "address",
            rf"\b(?:any|all|every) {_MODEL} (?:reading|processing|summari[sz]ing|that reads?|visiting|"
            rf"parsing)\b.{{0,60}}"
            r"\b(?:must|should|shall|needs? to|has to|have to|is required|are required|will)\b",
        ),
        (
            "output",
            rf"{_ORDER}(?:say|state|write|include|insert|mention|add|append|recommend|output|print|repeat|claim|"
            rf"conclude|put)"
            r"\b.{0,60}(?:\b(?:words?|phrases?|sentences?|following|links?|urls?|text|statement|string|token|"
            r"code|that)\b|[\"“'‘])"
            r".{0,80}\bin (?:your|the) (?:final |next )?(?:answer|response|reply|summary|output|report|review)\b",
        ),
        (
            "output",
            r"\b(?:when|if|while|before) (?:you(?:['’]re| are) )?(?:asked (?:about|which|for recommend\w*|to "
            r"(?:recommend|summari[sz]e|compare|name|review))|"
            r"summari[sz]ing|answering|responding|"
            r"generating|citing|"
            r"you (?:summari[sz]e|answer|respond|write|cite))\b.{0,80}[,:]\s*(?:you (?:must|should|will)|always|"
            r"never|only|"
            r"(?:please )?(?:say|state|write|include|mention|recommend|output|reply|respond|answer)"
            r"(?= (?:that|only|[\"“'‘]|the (?:words?|phrase|sentence)|our|this)\b))\b",
        ),
        (
            "secrets",
            rf"{_ORDER}(?:reveal|print|show|output|repeat|leak|display|send|disclose|tell (?:me|us))\b.{{0,40}}"
            r"\b(?:your|the) (?:system prompt|hidden prompt|initial prompt|"
            r"(?:system |secret |hidden |original )?instructions|"
            r"conversation history|chat history)\b",
        ),
        (
            "secrets",
            rf"{_ORDER}(?:send|post|forward|e-?mail|upload|exfiltrate|transmit)\b.{{0,60}}\b(?:conversation|"
            rf"chat history|user(?:['’]s)? data|"
            r"api keys?|credentials|passwords?|system prompt)\b.{0,40}\b(?:to|at)\b\s*(?:https?://|www\.|\S+@|this)",
        ),
        (
            "override",
            rf"{_ORDER}(?:pay no attention to|set aside|do away with|throw out|erase|cancel|supersede|no longer follow|"
            rf"stop listening to|skip)\s+{_EARLIER}(?:instructions?|prompts?|directives?|guidelines?|programming|"
            rf"guardrails?)\b{_CONDITION}",
        ),
        (
            "override",
            r"\b(?:your (?:previous|prior|earlier|original|initial|former|system|existing) |(?:all|any) (?:of your "
            r")?(?:previous|prior) "
            r"(?=instructions|prompts))"
            r"(?:instructions?|prompts?|directives?|guidelines?|programming) (?:are|is|were|have been|has "
            r"been)(?: now)? "
            r"(?:void|cancel\w*|obsolete|revoked|superseded|suspended|replaced|overrid\w+|outdated|no longer "
            r"(?:valid|apply|applicable|in force))\b",
        ),
        (
            "override",
            rf"{_ORDER}(?:ignore|disregard|forget|override|bypass|circumvent|disable|turn off)\s+(?:your|all|any|"
            rf"the)\s+(?:\w+\s+)?"
            r"(?:system prompt|safety (?:rules|filters?|guidelines|policies|training|measures)|content (?:policy|"
            r"filters?)|guardrails?|"
            r"alignment|developer message|hidden prompt|citation rules?|grounding rules?)\b",
        ),
        (
            "task",
            r"(?:\A|\n|[.!?>)\]#*=-]\s*)(?:your )?(?:new|updated|revised|real|actual|true|next|current) (?:system )?"
            r"(?:instructions?|tasks?|directives?|objectives?|goals?|prompt|orders?)(?: for you)?\s*(?::|is\b|"
            r"are\b|—|–)"
            r"(?=.{0,200}\b(?:you|your|respond|reply|ignore|instead|disregard|recommend|say (?:that|only)|output|the "
            r"user|answer)\b)",
        ),
        (
            "task",
            r"\b(?:end of (?:the )?(?:document|context|input|evidence|page|user input|untrusted (?:text|data)|"
            r"retrieved \w+)|"
            r"(?:begin|start) (?:of )?(?:the )?(?:new )?(?:session|system|instructions?|"
            r"prompt))\b[^a-z0-9]{0,40}.{0,80}"
            r"\b(?:now (?:write|say|answer|respond|output|do)|new (?:task|instructions?)|you (?:must|should|will|"
            r"are)|ignore|your task)\b",
        ),
        (
            "task",
            r"</(?:card|evidence|passage|remembered|turn|untrusted\w*|context|document|documents|user_input|"
            r"retrieved\w*|search_results?)>"
            r"(?=.{0,300}\b(?:you|your|task|instructions?|system|say|write|answer|respond|reply|output|recommend|"
            r"ignore)\b)",
        ),
        (
            "authority",
            r"\b(?:this is|message from|notice from|order from|i am|speaking as)\s+(?:an? |the |your |a message from )*"
            r"(?:official |urgent |authori[sz]ed )*(?:system administrator|developers?|openai|anthropic|google "
            r"deepmind|creators?|"
            r"operators?|safety team|system)\b.{0,100}\b(?:override|ignore|disregard|comply|new (?:rules|policy|"
            r"instructions)|"
            r"you (?:must|are (?:now )?(?:authori[sz]ed|permitted|required|allowed))|your (?:rules|restrictions|"
            r"guidelines))\b",
        ),
        (
            "authority",
            r"\bthe user (?:has|already|did) (?:already |now )?(?:authori[sz]ed|approved|consented|confirmed|asked|"
            r"requested|agreed)\b"
            r".{0,80}\b(?:you|to (?:recommend|say|send|skip|ignore|include|write)|without (?:checking|citing|"
            r"asking))\b",
        ),
        (
            "grade",
            r"\b(?:give|assign|award|grant|rate|score|rank|mark|grade)\b.{0,20}\b(?:this|the) (?:page|site|website|"
            r"paper|document|source|"
            r"answer|article|submission|text|report|draft|passage|manuscript|section|essay)\b.{0,60}\b(?:highest|"
            r"maximum|max|perfect|full marks|top|"
            r"10/10|5/5|100/100|10 out of 10|1\.0|ten out of ten|excellent)\b(?=.{0,40}(?:scor|rat|mark|grade|"
            r"relevan|trust|qualit|accura|[.!]|\Z))",
        ),
        (
            "grade",
            r"\b(?:reviewers?|graders?|evaluators?|judges?|raters?|critics?|verifiers?|checkers?)\b[^.]{0,60}"
            r"\b(?:must|should|shall|are (?:to|instructed|required)|please)\b[^.]{0,60}\b(?:pass(?: this)?|accept|"
            r"approve|highest|maximum|full (?:marks|score)|"
            r"positive(?:ly)?|as supported|no (?:issues|errors|weaknesses))\b(?=[^.]{0,80}(?:\bthis (?:page|paper|"
            r"site|claim|text|source)|"
            r"without (?:check|read|verif|compar)|regardless))",
        ),
        (
            "grade",
            r"(?:\A[\W_]*|[.!?:\n]\s*)(?:please )?(?:give|write|provide|produce|submit) (?:only )?(?:an? "
            r")?(?:positive|favou?rable|glowing) "
            r"(?:reviews?|assessment|evaluation)s?(?: only)?\b(?=.{0,60}(?:only|do not|paper|page|document|weakness|"
            r"negative|[.!]|\Z))|"
            r"\bdo not (?:highlight|mention|report|list|point out) any (?:negatives?|weaknesses|flaws|issues|"
            r"problems|errors)\b",
        ),
        (
            "grade",
            r"\b(?:mark|label|treat|accept|verify|report|flag|consider)\b.{0,20}\b(?:every|all|each|this|these|the) "
            r"(?:claims?|sentences?|statements?|page|source|site)"
            r"\b.{0,30}\bas (?:supported|verified|fully supported|ground truth|(?:the )?(?:only |most |sole "
            r")?(?:authoritative|trusted|reliable)(?: source)?|true)\b"
            r"(?=.{0,80}\b(?:without|regardless|no matter|even if|in your|when you|over (?:all|any)|do not|"
            r"above all)\b)",
        ),
        (
            "cite",
            rf"{_ORDER}(?:cite|quote|reference|credit|list)\b.{{0,40}}\b(?:this|our|the present|only this) (?:page|"
            rf"site|source|document|article|website|url|text)?\b.{{0,40}}"
            r"(?:\[\d+\]|\bin (?:every|each|all|your)\b|\bfor (?:every|each|all)\b|\bas (?:the )?(?:only|first|"
            r"primary|main|sole|supporting)\b|"
            r"\b(?:instead of|and no) other).{0,80}\b(?:sentences?|claims?|answers?|sources?|statements?|reports?|"
            r"reference|summary)\b",
        ),
        (
            "promote",
            rf"{_ORDER}(?:always |only )?(?:recommend|describe|present|rank|list|name|prefer|call|favou?r|promote|"
            rf"praise)\b.{{0,80}}"
            r"\b(?:best|only (?:choice|option)|top|number one|first choice|leading|above (?:all|any)|over (?:all|"
            r"any)(?: other)?|first|superior)\b"
            r".{0,80}\b(?:(?:in|when|whenever|for) (?:your|you(?:['’]re| are)? (?:answer\w*|summar\w*|ask\w*|"
            r"writ\w*)|any (?:answer|summary|question)|every answer)|"
            r"(?:the |your )users?\b|to (?:the|your|any) users?)",
        ),
        (
            "promote",
            r"\b(?:when(?:ever)?|if) (?:a |the |any |your )?(?:users?|someone|somebody|people|anyone|readers?) "
            r"(?:asks?|wants?|inquires?|enquires?)\b.{0,60}"
            r"[,:]\s*(?:you (?:must|should)|always|please|only|never)?\s*(?:recommend|say|mention|answer (?:with|"
            r"that)|reply|respond|name|suggest|"
            r"claim|insist|promote)\b(?=.{0,120}\b(?:best|only|trusted|top|leading|better|safest|unbeaten|superior)\b)",
        ),
        (
            "promote",
            rf"{_ORDER}remember\b.{{0,80}}\b(?:as (?:an? |the |your )?(?:trusted|authoritative|reliable|preferred|"
            rf"go-to|first)\b|"
            r"(?:in|for) (?:all )?future (?:conversations|answers|responses|chats|sessions|questions))",
        ),
        (
            "fetch",
            rf"{_ORDER}(?:fetch|visit|open|browse to|load|navigate to|request|call|download|go to|access|retrieve|"
            rf"get|read|search)\b.{{0,60}}"
            r"(?:https?://|www\.|\b[\w-]+\.(?:com|net|org|example|test|io|invalid))\S*.{0,120}"
            r"\b(?:before (?:you )?(?:answer|respond|reply|summari[sz]|writ|continu)|(?:obey|execute|do) (?:what|the|"
            r"any|all|everything)|"
            r"your (?:real|actual|next|new|full|further|remaining|task|instructions|orders|answer|report|summary|"
            r"response|tools?))",
        ),
        (
            "fetch",
            r"\b(?:use|call|invoke|run|execute)\s+(?:your|the|a|any)\s+(?:\w+\s+)?(?:fetch|browser?|browsing|search|"
            r"web|http|shell|code|python|e-?mail|file)\s+"
            r"(?:tool|function|plugin|interpreter|capability)s?\b.{0,60}\b(?:to|on|with|at|"
            r"and)\b.{0,60}(?:https?://|www\.)",
        ),
        (
            "exfiltrate",
            rf"{_ORDER}(?:add|append|include|insert|render|display|show|embed|load|output|put|place|end|finish|"
            rf"attach|generate)\b.{{0,100}}"
            r"(?:https?://|\bwww\.|data:|//)\S*.{0,160}\b(?:your (?:\w+ )?(?:answer|response|reply|summary|report|"
            r"output)|"
            r"the (?:answer|response|reply)|user['’]s (?:question|data|query)|conversation|chat history|system "
            r"prompt)\b",
        ),
        (
            "exfiltrate",
            rf"{_ORDER}(?:end|finish|close|begin|start|add to|complete) your (?:\w+ )?(?:answer|response|reply|"
            rf"summary|report|output)\b"
            r".{0,100}(?:https?://|\bwww\.|data:|//)\S",
        ),
        (
            "exfiltrate",
            r"!?\[[^\]]{0,80}\]\(\s*(?:https?:)?//[^)\s]{0,200}[?&/=](?:\{|\[|<|%7B|\$)\{?\s*[^)}\]>]{0,40}"
            r"(?:conversation|question|query|prompt|history|context|secret|user|chat|session|answer|summary|data|"
            r"api_?key)",
        ),
        (
            "exfiltrate",
            r"\b(?:replac(?:e|ing)|fill(?:ing)? in|substitut(?:e|ing)|encod(?:e|ing)|append(?:ing)?)\b.{0,80}\bthe "
            r"(?:user['’]?s? (?:question|data|name|query)|conversation|"
            r"chat history|system prompt|(?:full )?prompt|session|api keys?|secrets?)\b.{0,100}(?:https?://|\burl\b|"
            r"\blink\b|\bquery string\b|\bparameter\b)",
        ),
    )
)
