"""How orders to a model read, in several languages: data for `injection`."""

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
    r"original|initial|system|safety|developer|user|foregoing|aforementioned|given)\s+){1,5}"
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
            rf"(?:\A[\W_]*|\n\s*|[.!?]\s+)(?:dear|attention|hey|hello|hi|note (?:to|for)|message (?:to|for)|"
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
            r"\b(?:when|if|while|before) (?:you(?:['’]re| are) )?(?:asked|summari[sz]ing|answering|responding|"
            r"generating|citing|"
            r"you (?:summari[sz]e|answer|respond|write|cite))\b.{0,80}[,:]\s*(?:you (?:must|should|will)|always|"
            r"never|only|"
            r"(?:please )?(?:say|state|write|include|mention|recommend|output|reply|respond|answer))\b",
        ),
        (
            "secrets",
            rf"{_ORDER}(?:reveal|print|show|output|repeat|leak|display|send|disclose|tell (?:me|us))\b.{{0,40}}"
            r"\b(?:your|the) (?:system prompt|hidden prompt|initial prompt|"
            r"(?:system |secret |hidden |original )?instructions|"
            r"api keys?|credentials|conversation history|chat history|secrets?)\b",
        ),
        (
            "secrets",
            rf"{_ORDER}(?:send|post|forward|e-?mail|upload|exfiltrate|transmit)\b.{{0,60}}\b(?:conversation|"
            rf"chat history|user(?:['’]s)? data|"
            r"api keys?|credentials|passwords?|system prompt)\b.{0,40}\b(?:to|at)\b\s*(?:https?://|www\.|\S+@|this)",
        ),
        (
            "override",
            r"\b(?:ignorier\w*|vergiss|vergessen sie|"
            r"missachte\w*|übergehe\w*)\b.{0,30}\b(?:vorherig\w*|bisherig\w*|obig\w*|früher\w*|"
            r"vorangegangen\w*|alle\w*|deine\w*|ihre\w*)\b.{0,20}\b(?:anweisung\w*|instruktion\w*|befehl\w*|vorgabe\w*|regeln|prompts?)\b",
        ),
        ("role", r"\bals (?:ki|sprachmodell|assistent)\b.{0,20}\b(?:musst|sollst|müssen|sollen|darfst)\b"),
        (
            "override",
            r"\b(?:ignore[zr]?|oublie[zr]?|ne (?:tiens|tenez) pas compte de)\b.{0,20}\b(?:toutes?|les|tes|"
            r"vos)\b.{0,12}"
            r"\b(?:instructions|consignes|directives|règles)\b",
        ),
        (
            "override",
            r"\b(?:ignor[ae]|olvid[ae]|omit[ae]|descart[ae]|esque[çc][ae]|desconsider[ae]|dimentica|"
            r"ignorare)\b.{0,20}"
            r"\b(?:las|tus|sus|todas|as|suas|le|tutte|todos)\b.{0,14}\b(?:instrucciones|indicaciones|órdenes|"
            r"reglas|instruções|"
            r"istruzioni|regole)\b",
        ),
        (
            "override",
            r"(?:игнорируй(?:те)?|забудь(?:те)?|не следуй(?:те)?)\b.{0,30}(?:инструкци|указани|команд|правил)",
        ),
        (
            "override",
            r"(?:忽略|无视|無視|忘记|忘記|不要理会|抛开).{0,10}(?:之前|以上|上述|前面|先前|所有|此前|系统).{0,8}(?:指令|指示|提示|要求|规则|命令|說明|说明)",
        ),
        (
            "role",
            r"(?:作为|身为|作為)(?:一个|一個|一名)?(?:人工智能|AI|语言模型|語言模型|助手|大模型).{0,12}(?:必须|必須|应该|應該|需要|请|請|务必)",
        ),
        (
            "override",
            r"(?:以前|これまで|上記|前|すべて|全て)の?.{0,6}(?:指示|命令|プロンプト|ルール).{0,6}(?:無視|忘れ)",
        ),
        ("override", r"(?:이전|위의|앞의|모든).{0,8}(?:지시|명령|지침|프롬프트).{0,8}(?:무시|잊)"),
        ("override", r"(?:تجاهل|انس[َى]?|اهمل).{0,20}(?:التعليمات|الأوامر|التوجيهات)"),
        ("override", r"(?:पिछले|सभी|पूर्व).{0,12}(?:निर्देश|आदेश).{0,12}(?:अनदेखा|नज़रअंदाज|भूल)"),
    )
)

# No rule applies without one of these: a quick look before the slow one.
TRIGGER = re.compile(
    r"ignor|disregard|forget|overrid|bypass|discard|neglect|(?:not|n['’]t|stop) (?:follow|obey)|"
    r"stop (?:following|obeying)|"
    r"\bA\.?I\b|\bLLM|language model|chat ?bot|assistant|agents?\b|gpt|claude|gemini|copilot|llama|"
    r"(?:you are now|from now|act as|pretend|switch to|enter)\b.{0,40}(?:DAN|jailb|mode|restrict|unfilter|access)|"
    r"in (?:your|the) (?:final |next )?(?:answer|response|reply|summary|output|report|review)\b|"
    r"\b(?:when|if|while|before) (?:you|asked|summ|answ|resp|gener|citing)|"
    r"(?:system|hidden|initial) (?:prompt|message|instruct|overrid|note|update)|system\W{0,3}:|developer\W{0,3}:|"
    r"your (?:\w+ )?instruct|the (?:\w+ )?instruct|api key|credential|secrets?\b|(?:chat|conversation) history|"
    r"the conversation|passwords?\b|user['’]?s? data|#\s*(?:new |system |updated )?(?:instruct|prompt|task)|"
    r"<\||\[/?INST|<</?SYS|"
    r"<(?:system|assistant)|vergiss|vergessen|missacht|übergeh|\bKI\b|sprachmodell|assistent|oublie|tiens pas|"
    r"tenez pas|olvid|omit|descart|esque|desconsider|dimentic|игнор|забудь|не следуй|"
    r"忽略|无视|無視|忘|不要理会|抛开|作为|身为|作為|무시|잊|"
    r"تجاهل|انس|اهمل|अनदेखा|नज़र|भूल",
    _I,
)

# Marks of a chat transcript: they belong to no page's text.
TOKENS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "token",
        re.compile(r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id)\|>"),
    ),
    ("token", re.compile(r"\[/?INST\]|<</?SYS>>|<(?:system|assistant)(?:_prompt|_message|-reminder)?>\s*\w")),
    (
        "token",
        re.compile(
            r"(?:\A|\n)\s*[#*\[]*\s*(?:system|assistant|developer)(?:\s+(?:prompt|message|"
            r"instructions?|override|note|update))?\s*[\]*]*:"
            r"(?=.{0,160}\b(?:you(?:r)?|ignore|respond|reply|output|answer|must|disregard|instructions?|new task)\b)",
            _I | re.DOTALL,
        ),
    ),
    (
        "token",
        re.compile(
            r"(?:\A|\n)\s*#{2,}\s*(?:new |system |updated )?(?:instructions?|prompt|task)\s*:?"
            r"(?=.{0,160}\b(?:ignore|respond|reply|you must|your answer|output)\b)",
            _I | re.DOTALL,
        ),
    ),
)

QUOTED = re.compile(
    r"\"[^\"\n]{3,300}\"|“[^”\n]{3,300}”|„[^“”\n]{3,300}[“”]|«[^»\n]{3,300}»|'[^'\n]{8,300}'|‘[^’\n]{8,300}’|`[^`\n]{3,300}`|「[^」]{3,200}」"
)
DESCRIPTIVE = re.compile(
    r"\b(?:such as|like|e\.g|for example|for instance|"
    r"phrases?|examples?|attack\w*|inject\w*|jailbreak\w*|adversar\w*|malicious|"
    r"says?|said|saying|wrote|writes?|typed?|typing|contain\w*|includ\w*|called|string|payload|hidden|"
    r"tells?|told|asks?|asked|"
    r"instruct\w*|reads?|prompt\w*|message|users?|researchers?|beispiel\w*|etwa|angriff\w*|exemple|"
    r"attaque\w*|ejemplo|ataque\w*)\b|"
    r"例如|攻击|注入|比如|例えば|攻撃",
    _I,
)
# A further order, or words to "you", right after one.
AIMED = re.compile(
    r"[\W_]*(?:say|write|respond|reply|answer|output|print|tell|state|include|mention|recommend|rate|give|"
    r"reveal|send|visit|"
    r"click|call|use|do not|don['’]t|never|always|instead|then|also|you|your|from now|only|please|add|append|"
    r"insert|report|"
    r"claim|conclude|translate|summari[sz]e|make sure|ensure|follow|begin|start|end|return|act|pretend|"
    r"this is (?:an? )?(?:order|"
    r"command|instruction|important)|if you|when you|new (?:task|instructions?)|antworte\w*|schreibe?|gib|"
    r"sage?|empfehle\w*|"
    r"réponds|répondez|écri[st]|écrivez|dites|responde|escribe|di|отвечай|напиши|скажи)\b|"
    r"[\W_]*(?:请|請|务必|只|直接|回答|回复|输出|写|答え|出力)",
    _I,
)
