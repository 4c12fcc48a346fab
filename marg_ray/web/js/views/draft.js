// The draft as it stands, to be read before it is decided on.

import { getJson, run as runUrl } from "../api.js";
import { fill, h } from "../dom.js";
import { loading, problemIn } from "../parts.js";
import { Passages } from "./passage.js";
import { Prose } from "./prose.js";

export function draftPreview(run) {
  const body = h(".draft-body", {}, loading(4));
  let asked = false;
  const details = h(
    "details.draft",
    { ontoggle: () => details.open && !asked && ((asked = true), load()) },
    h("summary", {}, "Read the draft"),
    body,
  );
  async function load() {
    try {
      const draft = await getJson(runUrl(run.id, "/draft"));
      const passages = new Passages(run.id, draft, { draft: true });
      const prose = new Prose(draft, passages);
      fill(
        body,
        h(
          "article.prose",
          { lang: draft.language },
          draft.sections.map((section) => [h("h3", { dir: "auto" }, section.title), prose.section(section)]),
        ),
        passages.node,
      );
    } catch (error) {
      asked = false;
      problemIn(fill(body, h("div")).firstChild, error);
    }
  }
  return details;
}
