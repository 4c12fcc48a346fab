"""A report's own headings and notices in the language it is written in.

The record of how it was checked (scores, usage, trace, notes) stays English, as do languages not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ENGLISH: Mapping[str, str] = MappingProxyType(
    {
        "report": "Research report",
        "question": "Question",
        "in_brief": "In brief",
        "contents": "Contents",
        "disagree": "Where the sources disagree",
        "unanswered": "Not answered by the documents",
        "references": "References",
        "checked": "How this report was checked",
        "notes": "Notes",
        "ai": "AI-generated",
        "ai_by": "by {model}.",
        "quoted": "Composed without a language model",
        "quoted_from": "from verbatim quotations.",
        "sources": "Sources read: {read}, cited: {cited}.",
        "leads": "Each citation leads to the passage it rests on.",
        "passed": "Passed",
        "passed_text": "Every factual sentence was checked against the passages it cites.",
        "quality_warning": "Quality warning",
        "quality_warning_text": "This report did not pass its own check. Read it as a draft.",
        "insufficient_evidence": "Insufficient evidence",
        "insufficient_evidence_text": "The sources do not answer the question.",
        "budget_stopped": "Stopped by its budget",
        "budget_stopped_text": "A limit was reached before the report was finished; this had been written.",
        "cancelled": "Cancelled",
        "cancelled_text": "The run was cancelled; this had been written.",
        "marked": "Marked in the text: {list}.",
        "nearest": "Nearest material",
        "nearest_text": "The sources do not state this directly. What follows is the nearest material in them.",
        "missing": "Found in no document: {terms}.",
        "only_quotes": "The passages found for this section, word for word:",
        "published": "published {date}",
        "read": "read {date}",
        "supported": "supported",
        "partial": "partly supported",
        "unsupported": "not supported",
        "contradicted": "contradicted",
        "not_factual": "nothing to check",
        "not_checked": "not checked",
        "careful": "Sentences to read with care",
        "page_of": "Page {page} of {pages}",
        "glyphs": "Letters without a font on the machine that made this file: {scripts}.",
    }
)
_KEYS = tuple(ENGLISH)

# In the order of ENGLISH.
_OTHERS: dict[str, tuple[str, ...]] = {
    "de": (
        "Recherchebericht", "Frage", "Kurz gefasst", "Inhalt", "Wo die Quellen sich widersprechen",
        "In den Dokumenten nicht beantwortet", "Quellen", "Wie dieser Bericht geprüft wurde", "Hinweise",
        "KI-generiert", "von {model}.", "Ohne Sprachmodell zusammengestellt", "aus wörtlichen Zitaten.",
        "Gelesene Quellen: {read}, zitiert: {cited}.", "Jeder Beleg führt zur Textstelle, auf der er beruht.",
        "Bestanden", "Jeder Sachsatz wurde an den Textstellen geprüft, die er zitiert.",
        "Qualitätswarnung", "Dieser Bericht hat seine eigene Prüfung nicht bestanden. Als Entwurf zu lesen.",
        "Zu wenig Belege", "Die Quellen beantworten die Frage nicht.",
        "Vom Budget gestoppt", "Eine Grenze war erreicht, bevor der Bericht fertig war; so weit war er geschrieben.",
        "Abgebrochen", "Der Lauf wurde abgebrochen; so weit war der Bericht geschrieben.",
        "Im Text markiert: {list}.", "Nächstliegendes Material",
        "Die Quellen sagen das nicht unmittelbar. Es folgt, was ihm am nächsten kommt.",
        "In keinem Dokument: {terms}.", "Die zu diesem Abschnitt gefundenen Stellen im Wortlaut:",
        "veröffentlicht {date}", "gelesen {date}",
        "belegt", "teilweise belegt", "nicht belegt", "widersprochen", "nichts zu prüfen", "nicht geprüft",
        "Mit Vorsicht zu lesende Sätze", "Seite {page} von {pages}",
        "Zeichen, für die auf dem Rechner dieser Datei keine Schrift war: {scripts}.",
    ),
    "fr": (
        "Rapport de recherche", "Question", "En bref", "Sommaire", "Où les sources divergent",
        "Sans réponse dans les documents", "Références", "Comment ce rapport a été vérifié", "Remarques",
        "Généré par IA", "({model}).", "Composé sans modèle de langage", "à partir de citations mot à mot.",
        "Sources lues : {read}, citées : {cited}.", "Chaque renvoi mène au passage sur lequel il repose.",
        "Validé", "Chaque phrase factuelle a été vérifiée sur les passages qu’elle cite.",
        "Avertissement", "Ce rapport n’a pas passé son propre contrôle. À lire comme une ébauche.",
        "Preuves insuffisantes", "Les sources ne répondent pas à la question.",
        "Arrêté par son budget", "Une limite a été atteinte avant la fin du rapport ; voici ce qui était écrit.",
        "Annulé", "L’exécution a été annulée ; voici ce qui était écrit.",
        "Marqué dans le texte : {list}.", "Éléments les plus proches",
        "Les sources ne le disent pas directement. Voici ce qui s’en approche le plus.",
        "Dans aucun document : {terms}.", "Les passages trouvés pour cette section, mot à mot :",
        "publié le {date}", "lu le {date}",
        "étayé", "étayé en partie", "non étayé", "contredit", "rien à vérifier", "non vérifié",
        "Phrases à lire avec prudence", "Page {page} sur {pages}",
        "Caractères sans police sur la machine qui a produit ce fichier : {scripts}.",
    ),
    "es": (
        "Informe de investigación", "Pregunta", "En breve", "Contenido", "Donde las fuentes discrepan",
        "Sin respuesta en los documentos", "Referencias", "Cómo se comprobó este informe", "Notas",
        "Generado por IA", "({model}).", "Compuesto sin modelo de lenguaje", "con citas literales.",
        "Fuentes leídas: {read}, citadas: {cited}.", "Cada cita lleva al pasaje en que se apoya.",
        "Aprobado", "Cada frase factual se comprobó con los pasajes que cita.",
        "Aviso de calidad", "Este informe no superó su propia comprobación. Léase como borrador.",
        "Pruebas insuficientes", "Las fuentes no responden a la pregunta.",
        "Detenido por su presupuesto", "Se alcanzó un límite antes de terminar; esto es lo que estaba escrito.",
        "Cancelado", "La ejecución se canceló; esto es lo que estaba escrito.",
        "Marcado en el texto: {list}.", "Material más cercano",
        "Las fuentes no lo dicen directamente. Sigue lo que más se le acerca.",
        "En ningún documento: {terms}.", "Los pasajes hallados para esta sección, palabra por palabra:",
        "publicado {date}", "leído {date}",
        "respaldado", "respaldado en parte", "no respaldado", "contradicho", "nada que comprobar", "no comprobado",
        "Frases que conviene leer con cautela", "Página {page} de {pages}",
        "Caracteres sin fuente en el equipo que produjo este archivo: {scripts}.",
    ),
    "zh": (
        "研究报告", "问题", "摘要", "目录", "资料来源的分歧", "文献未能回答的问题", "参考资料",
        "本报告如何核查", "说明",
        "人工智能生成", "（{model}）。", "未使用语言模型", "由原文摘录组成。", "已读来源：{read}，已引用：{cited}。",
        "每个引用标记都指向其依据的原文。", "通过", "每个事实性句子都已对照其引用的原文核查。",
        "质量警告", "本报告未通过自身核查，请作为草稿阅读。", "证据不足", "资料来源不能回答该问题。",
        "因预算停止", "报告完成前已达到限额；以下为已写内容。", "已取消", "运行已取消；以下为已写内容。",
        "文中已标记：{list}。", "最接近的材料", "资料来源没有直接说明；以下是最接近的材料。",
        "任何文献中都没有：{terms}。",
        "本节找到的原文：", "发布于 {date}", "读取于 {date}",
        "有依据", "部分有依据", "无依据", "与来源矛盾", "无需核查", "未核查",
        "需谨慎阅读的句子", "第 {page} 页，共 {pages} 页", "生成本文件的计算机缺少以下文字的字体：{scripts}。",
    ),
    "ar": (
        "تقرير بحثي", "السؤال", "باختصار", "المحتويات", "حيث تختلف المصادر", "ما لم تجب عنه الوثائق", "المراجع",
        "كيف جرى التحقق من هذا التقرير", "ملاحظات", "أُنشئ بالذكاء الاصطناعي", "بواسطة {model}.",
        "جُمع دون نموذج لغوي", "من اقتباسات حرفية.", "المصادر المقروءة: {read}، المستشهد بها: {cited}.",
        "كل إحالة تقود إلى الفقرة التي تستند إليها.", "اجتاز التحقق", "جرى التحقق من كل جملة خبرية مقابل ما تستشهد به.",
        "تحذير من الجودة", "لم يجتز هذا التقرير تحققه الذاتي؛ فليُقرأ كمسودة.", "أدلة غير كافية",
        "المصادر لا تجيب عن السؤال.", "أوقفته ميزانيته", "بُلغ حدٌّ قبل اكتمال التقرير؛ وهذا ما كُتب.",
        "أُلغي", "أُلغي التشغيل؛ وهذا ما كُتب.", "معلَّم في النص: {list}.", "أقرب المواد",
        "المصادر لا تذكر هذا مباشرة. وفيما يلي أقرب ما فيها.", "لا يوجد في أي وثيقة: {terms}.",
        "الفقرات التي وُجدت لهذا القسم حرفيًا:", "نُشر \u2066{date}\u2069", "قُرئ \u2066{date}\u2069",
        "مدعوم", "مدعوم جزئيًا", "غير مدعوم", "تناقضه المصادر", "لا شيء للتحقق منه", "لم يُتحقق منه",
        "جمل تُقرأ بحذر", "صفحة {page} من {pages}",
        "حروف لا خط لها على الجهاز الذي أعد هذا الملف: {scripts}.",
    ),
}  # fmt: skip
LANGUAGES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": ENGLISH,
        **{code: MappingProxyType(dict(zip(_KEYS, texts, strict=True))) for code, texts in _OTHERS.items()},
    }
)


def labels(language: str) -> Mapping[str, str]:
    """The labels for an ISO 639 code; English where there are none."""
    return LANGUAGES.get(language.split("-")[0].lower(), ENGLISH)
