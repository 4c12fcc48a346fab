"""What must stand in a text, in small letters, for a rule to apply at all: a quick look before the slow one.

One entry for each rule, in the tables' order; a longer one goes on in lines that begin with two blanks. Words of which
one must occur, groups of which all must, "&" between groups. A search for a word costs a hundredth of what a rule
costs, so that plain prose is passed over quickly.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from marg_ray.grounding.injection_languages import FOREIGN_RULES
from marg_ray.grounding.injection_rules import RULES
from marg_ray.grounding.injection_signs import TOKENS

_AI = (
    ' ai|(ai|-ai|/ai|“ai|"ai|¶ai|*ai|#ai|[ai|>ai|a.i|llm'
    "|language model|chat bot|chatbot|assistant|agent|gpt|claude|gemini|copilot|llama"
)
_ANSWER = "answer|response|reply|summary|output|report|review"
_BEGIN = "|".join(
    f"{v} {w}" for v in ("begin", "start") for w in ("of", "the", "new", "session", "system", "instr", "prompt")
)
_IN_THE = "|".join(f"in the {w}" for w in (*_ANSWER.split("|"), "final", "next"))
_NEEDS = f"""
<¦|<｜
[inst|[/inst|tool|sys>|_of_turn|<system|<assistant
<tool|</tool|<function|</function|<invoke|functions.|"arguments"|"parameters"|"args"|"input"|"action_input"|
  action:|action input
human: & ai:|assistant:
system:|system :|system prompt|system message|system instruction|system override|system note|system update|
  system]|system*|assistant:|assistant :|assistant prompt|assistant message|assistant instruction|
  assistant override|assistant note|assistant update|assistant]|assistant*|developer:|developer :|developer prompt|
  developer message|developer instruction|developer override|developer note|developer update|developer]|developer* & :
## & instruction|prompt|task
ignor|disregard|forget|overrid|bypass|discard|neglect|follow|obey & instruction|prompt|direct|rule|guideline|
  command|programming|training|message|constraint|restriction|policies|context|guardrail
ignor|disregard|forget & told|instruct|given|above|before this|prior
{_AI} & as |you & must|should|need|have to|are |will|shall|may|cannot|please|ignore|output|respond|reply|include|
  recommend|rate|say|write
you are now|from now|act as|pretend|switch to|enter & dan|jailb|mode|restrict|unfiltered|access
{_AI} & dear|attention|hey|hello|hi|note|message|instruction|important|to a|to every|to the & :|,|!|—|-|reading|
  processing|summari
any |all |every & {_AI} & reading|processing|summari|read|visiting|parsing
in your|{_IN_THE} & {_ANSWER}
asked |summari|answering|responding|generating|citing|you answer|you respond|you write|you cite & when|if|while|
  before
instructions|system prompt|hidden prompt|initial prompt|history & reveal|print|show|output|repeat|leak|display|
  send|disclose|tell
conversation|chat history| data|api key|credential|password|system prompt & send|post|forward|mail|upload|
  exfiltrate|transmit & http|www.|@|this
no attention|set aside|do away|throw out|erase|cancel|supersede|no longer|stop listening|skip & instruction|
  prompt|directive|guideline|programming|guardrail
void|cancel|obsolete|revoked|superseded|suspended|replaced|overrid|outdated|no longer & instruction|prompt|
  directive|guideline|programming
ignore|disregard|forget|override|bypass|circumvent|disable|turn off & prompt|safety|content|guardrail|alignment|
  developer|citation|grounding
instruction|task|directive|objective|goal|prompt|order & new|updated|revised|real|actual|true|next|current & you|
  ignore|respond|reply|instead|say|user|answer|output|recommend
end of|{_BEGIN} & document|context|input|evidence|page|untrusted|retrieved|session|system|instruction|
  prompt & you|ignore|now|new|task
</
this is|message from|notice from|order from|i am|speaking as & override|ignore|disregard|comply|new|you & system|
  developer|openai|anthropic|deepmind|creator|operator|safety
the user & authori|approved|consented|confirmed|asked|requested|agreed
highest|maximum| max|perfect|full marks| top|10/10|5/5|100/100|10 out|1.0| ten |excellent & give|assign|award|
  grant|rate|score|rank|mark|grade
reviewer|grader|evaluator|judge|rater|critic|verifier|checker & must|should|shall|are|please & this|without|
  regardless
positive|favourable|favorable|glowing|do not & review|assessment|evaluation|negative|weakness|flaw|issue|problem|
  error
as supported|as verified|as fully|as ground|as the|as true|as authoritative|as trusted|as reliable|as only|
  as most|as sole & without|regardless|no matter|even if|in your|when you|over a|do not|above all
cite|quote|reference|credit|list & this|our|the present & sentence|claim|answer|source|statement|report|reference|
  summary
your| you|user|any answer|any summary|any question|every answer & recommend|describe|present|rank|list|name|
  prefer|call|favo|promote|praise & best|only|top|number|first|leading|above|over|superior
asks|ask |ask,|ask:|wants|want |want,|inquire|enquire & when|if & recommend|say|mention|answer|reply|respond|name|
  suggest|claim|insist|promote & best|only|trusted|top|leading|better|safest|unbeaten|superior
remember & trusted|authoritative|reliable|preferred|go-to|first|future
http|www.|.com|.net|.org|.example|.test|.io|.invalid & before|obey|execute|do |your
tool|function|plugin|interpreter|capabilit & http|www. & use|call|invoke|run|execute
http|www.|data:|// & your|answer|response|reply|question|query|conversation|chat|prompt
http|www.|data:|// & your & answer|response|reply|summary|report|output
](
http|url|link|query string|parameter & replac|fill|substitut|encod|append & user|conversation|history|prompt|
  session|key|secret
ignorier|vergiss|vergessen|missacht|übergeh|verwirf|überschreib|beachte & anweisung|instruktion|befehl|vorgabe|
  regel|prompt|richtlinie
ignore|oublie|tiens|tenez|abstraction|obéi|applique & instruction|consigne|directive|règle|prompt|précède
ignor|olvid|omit|descart|caso omiso|no sigas|no hagas|esque|desconsider|diment|trascura|non seguire|
  non tenere & instruc|indicac|órdenes|reglas|directrices|prompt|instruç|orientaç|regras|ordens|comand|istruzioni|
  regole|direttive|indicazioni
игнор|забудь|не следуй|отмени|ігнор|не виконуй|не зважай & инструкци|указани|команд|правил|промпт|інструкці|
  вказів|підказ
ignoruj|zapomnij|pomiń|odrzuć|nie stosuj & instrukcj|polece|wskazów|reguł|zasad|prompt
negeer|vergeet|sla over|overschrijf|houd geen & instructie|opdracht|regels|prompt|richtlijn|aanwijzing
talimat|yönerge|komut|kural|istem & yok say|görmezden|unut|dikkate|göz ardı
指示|命令|プロンプト|ルール|指令 & 無視|忘れ|従わない
지시|명령|지침|프롬프트|규칙 & 무시|잊
अनद|नज|भूल
忽略|无视|無視|忘|不要理|抛开|拋開|跳过|覆盖|不要遵守|请勿遵循
تجاهل|انس|اهمل|أهمل|لا تتبع
התעל|שכח|תציית|הזנח
bỏ qua|quên|phớt lờ
abaikan|lupakan
als ki|als sprachmodell|als assistent|als künstliche
en tant qu
como ia|como una|como uma|como asistente|como assistente|como modelo
come ia|come assistente|come modello|in quanto
как |являясь
як |будучи
jako & si|ai|model|asystent
作为|身为|作為
として|は|なら & ai|人工知能|言語モデル|アシスタント
하|해 & ai|인공지능|언어 모델|어시스턴트
चाहिए|अवश्य|करो|करें & ai|एआई|सहायक
بصفتك
עליך|חייב|אתה צריך
olarak
an alle|hinweis|achtung|nachricht|attention|note|message|nota|aviso|atenci|atenç|attenzione|mensaje|mensagem|
  messaggio|внимание|увага|сообщение|повідомлення|uwaga|wiadomość|wszystkich|aan alle|opgelet|dikkat|tüm & ki|ai|ia|
  yz|ии|ші|si|model|modèle|gpt|llm|ass|асс|asist|асист|asyst|sprach|язык|мовн|dil|taal
致|给|給 & ai|人工智能|模型|助手
へ|에게 & ai|アシスタント|言語モデル|어시스턴트|언어 모델
نماذج|الذكاء|المساعد
לכל|הודעה
antworte|schreib|erwähne|empfiehl|füge|nenne & nur|ausschließlich|immer|antwort|zusammenfassung
répond|écri|mentionne|recommande|ajoute & uniquement|seulement|toujours|dans ta|dans votre
responde|escribe|contesta|rispondi|scrivi|responda|escreva|menciona|recomienda|recomenda|incluye|inclua|menziona|
  consiglia|includi|mencione & sol|sólo|únic|siempre|sempre|apenas|somente|en tu|na sua|nella tua|en su
отвечай|напиши|скажи|упомяни|рекомендуй|згадай & ответ|отчёт|резюме|відповіді
的回答|的回复|的答案|的总结|的摘要|的报告|只回答|只输出|只回复|一律
"""


class Rule(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    needs: tuple[tuple[str, ...], ...]  # the first group is the rarest

    def may_apply(self, small: str) -> bool:
        return all(any(word in small for word in group) for group in self.needs)


def _needs(line: str) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(w.replace("¦", "|").replace("¶", "\n") for w in group.split("|") if w.strip())
        for group in line.split(" & ")
    )


ALL: tuple[Rule, ...] = tuple(
    Rule(name, pattern, _needs(line))
    for (name, pattern), line in zip(
        (*TOKENS, *RULES, *FOREIGN_RULES), _NEEDS.strip("\n").replace("\n  ", "").split("\n"), strict=True
    )
)


def low(text: str) -> str:
    """The text in small letters, each where it was; a blank before it, so that words that begin it begin with one."""
    small = text.lower()
    return " " + (small if len(small) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text))


class Hints(NamedTuple):
    """Where words stand that rules cannot do without, in order, and which rules these are (their places in `ALL`)."""

    places: list[int]
    rules: list[tuple[int, ...]]

    def within(self, start: int, end: int) -> list[Rule]:
        """The rules that the stretch may break."""
        first, last = bisect_left(self.places, start), bisect_left(self.places, end)
        return [ALL[n] for n in sorted({n for some in self.rules[first:last] for n in some})]


_GRAM = 4  # letters
_LONG = 4_000  # letters; in more of them most beginnings stand somewhere


class _Words(NamedTuple):
    """The words with their rules and letters; and by how each begins, which must stand in a text with the word."""

    all: tuple[tuple[str, frozenset[str], tuple[int, ...]], ...]
    by_beginning: Mapping[str, tuple[int, ...]]
    shorter: tuple[int, ...]


@lru_cache(maxsize=1)
def _first_words() -> _Words:
    rules: dict[str, list[int]] = {}
    for n, rule in enumerate(ALL):
        for word in rule.needs[0]:
            rules.setdefault(word, []).append(n)
    beginnings: dict[str, list[int]] = {}
    for n, word in enumerate(rules):
        beginnings.setdefault(word[:_GRAM], []).append(n)
    return _Words(
        tuple((word, frozenset(word), tuple(some)) for word, some in rules.items()),
        {beginning: tuple(some) for beginning, some in beginnings.items()},
        tuple(n for n, word in enumerate(rules) if len(word) < _GRAM),
    )


def _possible(small: str) -> list[int]:
    """The words that may stand in the text, found without a search for each of the hundreds."""
    words = _first_words()
    if len(small) > _LONG:
        letters = set(small)
        return [n for n, (_, its, _) in enumerate(words.all) if its <= letters]
    grams = set(map("".join, zip(small, small[1:], small[2:], small[3:], strict=False)))
    return [*words.shorter, *(n for some in words.by_beginning.keys() & grams for n in words.by_beginning[some])]


def hints(small: str) -> Hints:
    """Of a text in small letters, as `low` gives it; offsets are those of the text itself."""
    found: list[tuple[int, int]] = []
    words = _first_words().all
    for n in _possible(small):
        word = words[n][0]
        at = small.find(word)
        while at >= 0:
            found.append((max(0, at + (word[0] in " \n") - 1), n))
            at = small.find(word, at + len(word))
    found.sort()
    return Hints([at for at, _ in found], [words[n][2] for _, n in found])


def likely(small: str) -> list[Rule]:
    """The rules that a short text in small letters may break."""
    words = _first_words().all
    some = {rule for n in _possible(small) if words[n][0] in small for rule in words[n][2]}
    return [ALL[n] for n in sorted(some)]
