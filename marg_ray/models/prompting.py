"""Prompts: one template for each task, with a system part that never varies and a user part.

The order is made for prefix caches: the system text is the same in every call of a task; then what all calls of the
task in a session share (the question, the outline); then the evidence, the passages or the sections, which calls on the
same material share (a section that is written again, a document that is read for two sections); what differs comes
last.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from marg_ray.grounding.injection import veil
from marg_ray.models.client import ModelTask
from marg_ray.text import clean_text, one_line

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from marg_ray.models.tasks import EvidenceCard

_TAGS = re.compile(
    r"<(?=/?(?:evidence|card|passage|claims?|result|report|section|source|question|conversation|turn|remembered)\b"
    r"|[|｜]|</?SYS|/?(?:system|assistant|user|s|start_of_turn|end_of_turn|tool_calls?|tool_use|tool_response|function_calls?|"
    r"function_results?|invoke|parameter)\b)|\[(?=/?INST\]|/?(?:AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What is sent. `digest` names the template and the pieces it is made of, for traces."""

    system: str
    user: str
    digest: str

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.system) + estimate_tokens(self.user) + 8

    def messages(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is: four bytes of UTF-8 each, which holds for English prose and CJK alike."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))) // 4 + 1


def fewest_tokens(text: str) -> int:
    """The fewest tokens that tokenizers in use make of a text: long words in ASCII, three letters in other scripts."""
    ascii_only = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    others = 0 if ascii_only == len(text) else len(text.encode("utf-8", "surrogatepass")) - ascii_only
    return int(0.15 * ascii_only + others / 9)


def render(task: ModelTask[Any]) -> Prompt:
    """Fill the task's template with the task's fields.

    Raises:
        jinja2.UndefinedError: the template names something that the task does not have.
    """
    system, user = _blocks(task.template)
    values = {name: getattr(task, name) for name in type(task).model_fields}
    return Prompt(system=system, user=_fill(user, values), digest=template_digest(task.template))


@lru_cache(maxsize=64)
def template_digest(name: str) -> str:
    """Twelve hexadecimal digits that change with the template or anything it includes."""
    digest = hashlib.sha256()
    for part in sorted(set(_sources(f"{name}.md.j2"))):
        digest.update(part.encode())
    return digest.hexdigest()[:12]


def data(value: str) -> str:
    """Text from outside, which cannot close the tag it stands in, nor open a turn or a call of a chat."""
    return _TAGS.sub("‹", clean_text(str(value))).strip()


def line(value: str) -> str:
    """Text from outside on one line."""
    return one_line(_TAGS.sub("‹", str(value)))


def attr(value: str) -> str:
    """Text from outside on one line, fit to stand between double quotes."""
    return " ".join(data(value).replace('"', "'").split())[:300]


def by_source(cards: Iterable[EvidenceCard]) -> list[list[EvidenceCard]]:
    """The cards in their order, neighbours of one source together: its title is said once."""
    return [list(run) for _, run in groupby(cards, key=lambda c: (c.source_id, c.source_title, c.published))]


def below(path: str, title: str) -> str:
    """The headings above a passage without those that only repeat the title of its source."""
    kept = path.split(" > ")
    while kept and " ".join(kept[0].split()).casefold() == " ".join(title.split()).casefold():
        kept = kept[1:]
    return " > ".join(kept)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(
        loader=PackageLoader("marg_ray.models", "prompts"),
        undefined=StrictUndefined,  # a missing value is an error here, not a hole in the prompt
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # prompts are no HTML; `data` guards the tags
        auto_reload=False,  # else each prompt asks the disk whether its templates were changed
    )
    env.filters |= {"data": data, "attr": attr, "line": line, "by_source": by_source, "below": below, "veil": veil}
    return env


@lru_cache(maxsize=64)
def _blocks(name: str) -> tuple[str, Template]:
    """The system text, which no task changes, and the template of the user part."""
    source, _, _ = _loaded(f"{name}.md.j2")
    env = _environment()
    return _fill(env.from_string(_inside(source, "system")), {}), env.from_string(_inside(source, "user"))


def _inside(source: str, block: str) -> str:
    found = re.search(rf"{{% block {block} %}}\n(.*?)\n?{{% endblock %}}", source, re.DOTALL)
    assert found, f"a prompt has no block {block}"
    return found[1]


def _fill(template: Template, values: dict[str, Any]) -> str:
    return re.sub(r"\n{3,}", "\n\n", template.render(values)).strip()


def _loaded(file: str) -> tuple[str, str | None, Any]:
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), file)


def _sources(file: str) -> Iterator[str]:
    from jinja2 import meta

    source, _, _ = _loaded(file)
    yield source
    for other in meta.find_referenced_templates(_environment().parse(source)):
        if other is not None:
            yield from _sources(other)
