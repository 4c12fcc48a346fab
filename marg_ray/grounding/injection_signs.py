"""What tells a use of orders to a model from a mention, and what goes with an order: data for `injection`."""

from __future__ import annotations

import re

_I = re.IGNORECASE

# Marks of a chat transcript: they belong to no page's text.
TOKENS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "token",
        re.compile(
            r"<\|(?:im_start|im_end|system|user|assistant|tool|endoftext|endofprompt|eot_id|start_header_id|"
            r"end_header_id|start|"
            r"message|channel|constrain|call|return|begin_of_text|end_of_text|python_tag)\|>|<｜[^｜>]{2,40}｜>"
        ),
    ),
    (
        "token",
        re.compile(
            r"\[/?INST\]|\[/?(?:AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]|<</?SYS>>|</?(?:start|end)_of_turn>|"
            r"<(?:system|assistant)(?:_prompt|_message|-reminder)?>\s*\w"
        ),
    ),
    (
        "tool",
        re.compile(
            r"</?(?:tool_calls?|tool_use|tool_response|function_calls?|function_results?|function=\w+|"
            r"invoke\s+name=)[^<>]{0,80}>|"
            r"\{\s*\"(?:name|tool|function|action)\"\s*:\s*\"\w*(?:fetch|brows|search|send|e?mail|http|web|exec|run|"
            r"delete|open|shell|python|get|post)\w*\"\s*,"
            r"\s*\"(?:arguments|parameters|args|input|action_input)\"\s*:|"
            r"\bAction\s*:\s*\w+\s+Action Input\s*:|\bto=functions\.\w+|\bfunctions\.(?:fetch|browse|search|open|"
            r"send|run)\w*\(",
            _I,
        ),
    ),
    (
        "token",
        re.compile(r"(?:\A|\n)\s*Human:\s.{1,400}?\s(?:AI|Assistant):\s", re.DOTALL),
    ),
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
    r"\"[^\"\n]{3,300}\"|“[^”\n]{3,300}”|„[^“”\n]{3,300}[“”]|«[^»\n]{3,300}»|'[^'\n]{8,300}'|‘[^’\n]{8,300}’|"
    r"`[^`\n]{3,300}`|「[^」]{3,200}」"
)
DESCRIPTIVE = re.compile(
    r"\b(?:such as|like|e\.g|for example|for instance|"
    r"phrases?|examples?|attack\w*|inject\w*|jailbreak\w*|adversar\w*|malicious|"
    r"says?|said|saying|wrote|writes?|typed?|typing|contain\w*|includ\w*|called|string|payload|hidden|"
    r"tells?|told|asks?|asked|"
    r"instruct\w*|reads?|prompt\w*|message|users?|researchers?|beispiel\w*|etwa|angriff\w*|exemple|"
    r"attaque\w*|ejemplo|ataque\w*|exemplo|esempio|attacc\w*|например|пишет|атак\w*|злоумышленник\w*|фраз\w*|"
    r"наприклад|пише|przykład\w*|"
    r"bijvoorbeeld|örneğin)\b|"
    r"例如|攻击|注入|比如|例えば|攻撃",
    _I,
)
# A transcript's mark is spoken of, not used.
TOKEN_TALK = re.compile(
    r"\b(?:tokens?|tokenizers?|templates?|delimiters?|markers?|special|separators?|tags?|elements?|parsers?|"
    r"syntax)\b(?!.{0,200}\b(?:ignore|say|you must|"
    r"answer|respond|output|recommend)\b)",
    _I | re.DOTALL,
)
# What a manual says of its own steps: under a condition, or of a thing that has rules.
MANUAL = re.compile(
    r"\A\W*(?:if|when) (?:you (?:use|run|own|bought|already|did|do not|don['’]t|have (?:an?|the|already|version|"
    r"paid))|the|your)\b[^,]{0,80},|"
    r"\A\W*(?:for|on|with) (?:older|newer|version|windows|linux)\b|(?:do not|don['’]t|stop) (?:follow|obey)\w*|"
    r"(?:override|bypass|discard|neglect)\b.{0,40}\b(?:rules|constraints|restrictions|policies|messages|commands) "
    r"(?:of|in|for|from|on) "
    r"(?:the|this|an?|its) (?!(?:\w+ )?(?:system|developer|prompt|operator|assistant|model)\b)",
    _I,
)
PRIOR = re.compile(
    r"\b(?:previous|prior|earlier|your|system|original|initial|developer|safety|preceding|foregoing)\b", _I
)
# An order to forget, without what: it may follow in the next cell, line or sentence.
OPENING = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|do not (?:follow|obey)|(?:as|you are) an? (?:AI|language model)|"
    r"(?:give|rate|score|mark) this|reveal|ignorier\w*|vergiss|ignore[zr]|oublie[zr]?|ignora|olvida|игнорируй\w*|"
    r"забудь\w*)\b|\bHuman:\s|忽略|无视",
    _I,
)
OPENINGS = (
    *(
        "ignor",
        "disregard",
        "forget",
        "override",
        "bypass",
        "not follow",
        "not obey",
        "as an ai",
        "as a ai",
        "as a language",
    ),
    *(
        "are an ai",
        "are a language",
        "give this",
        "rate this",
        "score this",
        "mark this",
        "reveal",
        "human:",
        "vergiss",
    ),
    *("oublie", "olvida", "игнорируй", "забудь", "忽略", "无视"),
)
# Letters run together, all signs taken out.
SQUEEZED = re.compile(
    r"(?:ignore|disregard|forget|override|bypass)(?:all|any|every|the|your|my|of|these|those){0,3}"
    r"(?:previous|prior|above|earlier|system|preceding|past|former|original|safety)(?:and)?(?:previous|prior|above|"
    r"earlier)?"
    r"(?:instruction|prompt|rule|direction|directive|guideline|command)|systemprompt.{0,20}(?:reveal|print)|"
    r"reveal(?:your|the)systemprompt",
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
    r"réponds|répondez|écri[st]|écrivez|dites|dis|recommande\w*|mentionne\w*|responde|escribe|escreva|diga|di|"
    r"recomienda|recomende|"
    r"rispondi|scrivi|consiglia|отвечай\w*|напиши\w*|скажи\w*|рекомендуй\w*|порекомендуй\w*|napisz|odpowiedz|poleć|"
    r"zeg|schrijf|"
    r"(?:the )?(?:(?:only|right|correct|final|best|true) ){1,2}(?:answer|response|reply|recommendation)|the user|quote|"
    r"cite|remember|fetch|open|praise)\b|"
    r"[\W_]*(?:请|請|务必|務必|只|直接|回答|回复|输出|写|说|推荐|答え|出力|代わりに|必ず|대신|반드시|그리고|قل|اكتب|أجب|בדוק|אמור|כתוב|ענה|बोल|कह|लिख|"
    r"बताओ|söyle|yaz)",
    _I,
)
# The same at the head of the next paragraph: only what cannot open a plain paragraph after an order.
NEXT_AIMED = re.compile(
    r"[\W_]*(?:\d+[.)]\s*)?(?:(?:instead|then|now|and|also|please),?\s+)?(?:say|write|respond|reply|answer|output|"
    r"print|recommend|state|include|mention|"
    r"append|insert|claim|conclude|tell (?:the user|users|them)|from now on|do not (?:mention|reveal|tell)|reveal|"
    r"praise|antworte|schreibe|sage|"
    r"réponds|écris|dis|responde|escribe|rispondi|scrivi|escreva|отвечай|напиши|скажи)\b|[\W_]*(?:请|只回答|回答|输出|写|说|推荐)",
    _I,
)
