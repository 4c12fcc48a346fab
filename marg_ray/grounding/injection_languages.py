"""How orders to a model read in languages other than English: data for `injection`.

A rule needs a verb in the form of an order and, near it, what is ordered about: the earlier instructions, a prompt, the
answer. A report of somebody who ignored the rules uses other forms of the verb.
"""

from __future__ import annotations

import re

_I = re.IGNORECASE
_AI = (
    r"(?:KI|AI|IA|YZ|ИИ|ШІ|SI|Sprachmodelle?|Sprachassistent(?:en)?|ChatGPT|GPT|LLM|KI-\w+|mod[eè]les? de langage|"
    r"modelos? de (?:lenguaje|linguagem)|modell[oi] linguistic[oi]|языков\w+ модел\w+|мовн\w+ модел\w+|"
    r"model\w* językow\w*|dil model\w*|taalmodel\w*|assistente?s?|asistentes?|ассистент\w*|асистент\w*|asystent\w*)"
)

# language: (imperatives, between, objects); the objects may also come first where the language puts the verb last
_OVERRIDE: tuple[tuple[str, str, str], ...] = (
    (  # German
        r"ignoriere|ignorieren sie|(?<=[.!?:] )ignoriert|\Aignoriert|vergiss|vergessen sie|missachte|missachten sie|"
        r"übergehe|übergehen sie|verwirf|überschreibe|beachte(?:n sie)?(?= .{0,60}\bnicht)",
        r"vorherig\w*|bisherig\w*|obig\w*|früher\w*|vorangegangen\w*|vorige\w*|all\w*|deine\w*|ihre\w*|"
        r"sämtliche\w*|system",
        r"\w*anweisung\w*|instruktion\w*|befehl\w*|vorgaben?|regeln|\w*prompts?|richtlinien",
    ),
    (  # French
        r"ignore[zr]?|oublie[zr]?|ne (?:tiens|tenez) (?:pas|plus) compte d\w*|fai(?:s|tes) abstraction d\w*|"
        r"n['’](?:obéis|obéissez|applique[zr]?) (?:pas|plus)",
        r"toutes|tes|vos|précédent\w*|antérieur\w*|(?:les|des)(?=.{0,40}(?:précéd|antérieur|ci-dessus|système))|ce "
        r"qui précède",
        r"instructions?|consignes?|directives?|règles?|prompts?|précède",
    ),
    (  # Spanish, Portuguese, Italian
        r"ignor[aei]|ignore|ignoren|ignorad|olvid[ae]|omit[ae]|descart[ae]|haz caso omiso|no sigas|no hagas caso|"
        r"esque[çc][ae]|desconsider[ae]|descarte|dimentic[ahi]+|dimenticate|ignorate|ignorare|trascura|"
        r"non (?:seguire|tenere conto)",
        r"tus|sus|todas|todos|suas|seus|tutte|tutti|tue|tuoi|"
        r"(?:las|los|as|os|le|gli|i|d[aeo]s?|dell?e?)(?=.{0,40}(?:anterior|previ|precedent|sistema|de arriba|"
        r"acima|sopra))",
        r"instrucciones|indicaciones|órdenes|reglas|directrices|prompt|instruções|orientações|regras|ordens|comandos|"
        r"istruzioni|regole|direttive|indicazioni|comandi",
    ),
    (  # Russian, Ukrainian
        r"игнорируй(?:те)?|проигнорируй(?:те)?|забудь(?:те)?|не следуй(?:те)?|отмени(?:те)?|"
        r"ігноруй(?:те)?|проігноруй(?:те)?|не виконуй(?:те)?|не зважай(?:те)?",
        r"вс[еёіі]\w*|усі|предыдущ\w*|прежн\w*|попередн\w*|сво[иї]\w*|систем\w*|вышеуказанн\w*|на|твои|ваши",
        r"инструкци\w*|указани\w*|команд\w*|правил\w*|промпт\w*|інструкці\w*|вказів\w*|підказ\w*",
    ),
    (  # Polish
        r"zignoruj(?:cie)?|ignoruj(?:cie)?|zapomnij(?:cie)?|pomiń|odrzuć|nie stosuj się do",
        r"wszystki\w*|poprzedni\w*|wcześniejsz\w*|swoj\w*|powyższ\w*|system\w*",
        r"instrukcj\w*|polece\w*|wskazów\w*|reguł\w*|zasad\w*|prompt\w*",
    ),
    (  # Dutch
        r"negeer|vergeet|sla over|overschrijf|houd geen rekening met",
        r"alle|vorige|eerdere|bovenstaande|je|uw|voorgaande|systeem",
        r"instructies?|opdrachten|regels|prompts?|richtlijnen|aanwijzingen",
    ),
)
_VERB_LAST: tuple[str, ...] = (
    r"(?:önceki|tüm|bütün|yukarıdaki|sistem).{0,30}(?:talimat\w*|yönerge\w*|komut\w*|kural\w*|istem\w*).{0,20}"
    r"(?:yok say|görmezden gel|unut|dikkate alma|göz ardı et)(?:ın|in|un|ün|ınız|iniz|ayın)?(?!\w*(?:dı|di|du|dü|"
    r"mış|miş))\b",
    r"(?:以前|これまで|上記|前|すべて|全て|システム)の?.{0,8}(?:指示|命令|プロンプト|ルール|指令).{0,8}(?:無視し(?:て|ろ|、|。|なさい)|無視せよ|忘れ(?:て|ろ|なさい)|従わない)",
    r"(?:이전|위의|앞의|앞선|모든|기존|시스템).{0,10}(?:지시|명령|지침|프롬프트|규칙).{0,10}(?:무시하(?:세요|고|라|십시오)|무시해|잊(?:어|으세요|고))",
    r"(?:पिछले|पिछली|सभी|पूर्व|ऊपर).{0,14}(?:निर्देश|आदेश|नियम).{0,14}(?:अनदेखा|नज़रअंदाज|नजरअंदाज|भूल)",
    r"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要理會|抛开|拋開|跳过|覆盖|不要遵守|请勿遵循)(?!了|过).{0,10}(?:之前|以上|上述|上面|前面|先前|所有|此前|系统|系統|原有|全部|你的|"
    r"您的).{0,8}"
    r"(?:指令|指示|提示|要求|规则|規則|命令|說明|说明|设定|設定)",
    r"(?:تجاهل|تجاهلي|تجاهلوا|انس[َى]?|اهمل|أهمل|لا تتبع).{0,20}(?:التعليمات|الأوامر|التوجيهات|القواعد|الإرشادات|"
    r"تعليمات|أوامر)",
    r"(?:התעלם|התעלמי|התעלמו|שכח|שכחי|שכחו|אל תציית|הזנח).{0,20}(?:ההוראות|הוראות|ההנחיות|הנחיות|הכללים|הפקודות|"
    r"הפרומפט)",
    r"(?:bỏ qua|quên|phớt lờ).{0,12}(?:tất cả|mọi|các).{0,16}(?:hướng dẫn|chỉ dẫn|lệnh|quy tắc).{0,10}(?:trước|trên)",
    r"(?:abaikan|lupakan).{0,12}(?:semua|seluruh|segala)?.{0,10}(?:instruksi|perintah|petunjuk|"
    r"aturan).{0,10}(?:sebelumnya|di atas|sistem)",
)
_ROLE: tuple[str, ...] = (
    r"\bals (?:ki|sprachmodell|assistent|künstliche intelligenz)\b.{0,20}\b(?:musst|sollst|müssen sie|sollen sie|"
    r"darfst)\b",
    r"\b(?:en tant qu['’](?:ia|assistant|intelligence artificielle)|en tant que mod[eè]le)\b.{0,30}\b(?:tu dois|vous "
    r"devez|devez|dois)\b",
    r"\bcomo (?:ia|una ia|uma ia|asistente|assistente|modelo de (?:lenguaje|linguagem))\b.{0,20}\b(?:debes|debe "
    r"usted|tienes que|você deve|deves)\b",
    r"\b(?:come|in quanto) (?:ia|assistente|modello linguistico)\b.{0,20}\b(?:devi|dovete)\b",
    r"\b(?:как|являясь) (?:ии|искусственный интеллект|языковая модель|ассистент\w*)\b.{0,30}\b(?:ты|вы) (?:должен|"
    r"должна|должны|обязан\w*)",
    r"\b(?:як|будучи) (?:ші|штучний інтелект|мовна модель|асистент\w*)\b.{0,30}\b(?:ти|ви) (?:повинен|повинна|"
    r"повинні|маєш|мусиш)",
    r"\bjako (?:si|ai|model językowy|asystent)\b.{0,20}\b(?:musisz|powinieneś|masz)\b",
    r"(?:作为|身为|作為)(?:一个|一個|一名)?(?:人工智能|AI|语言模型|語言模型|助手|大模型|评审).{0,12}(?:必须|必須|应该|應該|需要|请|請|务必)",
    r"(?:AI|人工知能|言語モデル|アシスタント)(?:として|は|なら).{0,30}(?:しなければなりません|してください|しなさい|すること)",
    r"(?:AI|인공지능|언어 모델|어시스턴트)(?:로서|라면|는|은|에게).{0,40}(?:해야 (?:합니다|한다)|하세요|하십시오)",
    r"(?:जाने वाले|एक) (?:AI|एआई|सहायक).{0,40}(?:चाहिए|अवश्य|करो|करें)",
    r"بصفتك (?:نموذج|مساعد|ذكاء).{0,40}(?:يجب|عليك)",
    r"(?:בתור|כ)(?: |-)?(?:מודל שפה|עוזר|בינה מלאכותית|AI).{0,30}(?:עליך|חייב|אתה צריך)",
    r"\b(?:yapay zek[aâ]|dil modeli|asistan) olarak\b.{0,60}\b(?:\w*m[ae]lısın\w*|\w*m[ae]lisin\w*|zorundasın\w*)",
)
_ADDRESS: tuple[str, ...] = (
    rf"(?:\A[\W_]*|\n\s*|[.!?]\s+)(?:an alle|hinweis (?:an|für)|achtung|nachricht an|à l['’]attention d\w+|note (?:à|"
    rf"aux|pour)|"
    rf"message (?:à|aux|pour)|nota (?:para|per|a)|aviso (?:para|a)|atención|atenção|attenzione|mensaje para|"
    rf"mensagem para|"
    rf"messaggio per|внимание|увага|сообщение для|повідомлення для|uwaga|wiadomość dla|do wszystkich|aan alle|opgelet|"
    rf"dikkat|tüm)\s*[:,]?\s*(?:\w+['’ ]\s*){{0,3}}{_AI}\b[^.!?]{{0,40}}[:,!—-]",
    r"(?:致|给|給)(?:所有|任何)?.{0,6}(?:AI|人工智能|大模型|语言模型|語言模型|助手).{0,6}[:：,，]",
    r"(?:AI|アシスタント|言語モデル)(?:の方)?へ[:：、]|(?:AI|어시스턴트|언어 모델)에게[:：,]",
    r"(?:إلى|تنبيه) .{0,12}(?:نماذج|الذكاء الاصطناعي|المساعد).{0,10}[:،]",
    r"(?:לכל|הודעה ל).{0,10}(?:מודל|עוזר|בינה).{0,12}[:,]",
)
_OUTPUT: tuple[str, ...] = (
    r"\b(?:antworte(?:n sie)?|schreibe?(?:n sie)?) (?:nur|ausschließlich|immer)\b.{0,40}|"
    r"\b(?:schreibe?|erwähne|empfiehl|füge|nenne)\b.{0,80}\bin (?:deiner|ihrer|deine|ihre) (?:antwort|"
    r"zusammenfassung)\b",
    r"\b(?:réponds|répondez|écri[sv]\w*) (?:uniquement|seulement|toujours)\b|"
    r"\b(?:écri[sv]\w*|mentionne[zr]?|recommande[zr]?|ajoute[zr]?)\b.{0,80}\bdans (?:ta|votre) (?:réponse|synthèse|"
    r"résumé)\b",
    r"\b(?:responde|escribe|contesta|rispondi|scrivi|responda|escreva) (?:solo|sólo|únicamente|siempre|sempre|"
    r"soltanto|apenas|somente)\b|"
    r"\b(?:menciona|recomienda|escribe|incluye|recomenda|mencione|inclua|menziona|consiglia|includi)\b.{0,80}\b(?:en "
    r"tu|na sua|nella tua|en su)"
    r" (?:respuesta|resumen|resposta|resumo|risposta|sintesi)\b",
    r"\b(?:отвечай|напиши|скажи|упомяни|порекомендуй|рекомендуй)(?:те)?\b.{0,80}\bв (?:своём|своем|твоём|твоем|"
    r"вашем) (?:ответе|отчёте|резюме)\b|"
    r"\b(?:напиши|скажи|згадай|порекомендуй)(?:те)?\b.{0,80}\bу (?:своїй|твоїй|вашій) (?:відповіді)\b",
    r"(?:在|于)(?:你|您)的(?:回答|回复|答案|总结|摘要|报告)(?:中|里).{0,12}(?:必须|务必|请|写|说|推荐|提到|加入)|"
    r"(?:请|務必|务必|必须)?(?:只|一律)(?:回答|输出|回复)[“「\"'：:]",
)

_BETWEEN = r"[^.!?。！？]{0,30}"


def _override(verbs: str, between: str, objects: str) -> str:
    return rf"\b(?:{verbs})\b{_BETWEEN}?\b(?:{between})\b{_BETWEEN}?\b(?:{objects})\b"


FOREIGN_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, _I))
    for name, patterns in (
        ("override", (*(_override(*one) for one in _OVERRIDE), *_VERB_LAST)),
        ("role", _ROLE),
        ("address", _ADDRESS),
        ("output", _OUTPUT),
    )
    for pattern in patterns
)
