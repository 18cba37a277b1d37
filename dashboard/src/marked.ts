// Characters that nobody sees, or that turn a text around, are shown by their numbers.

import { options } from "preact";

/** As `is_hidden` of greenroom-bus has them. */
const HIDDEN = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

const ATTRIBUTES = ["title", "aria-label"];

/** From now on no text of the page hides any: `a\u{202e}b`. What is sent back stays as it came. */
export function startMarking(): void {
  options.vnode = (vnode) => {
    const node = vnode as { type: unknown; props: unknown };
    // The props of a text are the text.
    if (node.type === null) node.props = marked(node.props);
    if (typeof node.type !== "string") return;
    const props = node.props as Record<string, unknown>;
    for (const name of ATTRIBUTES) if (name in props) props[name] = marked(props[name]);
  };
}

function marked(text: unknown): unknown {
  if (typeof text !== "string") return text;
  return text.replace(HIDDEN, (hidden) => `\\u{${hidden.charCodeAt(0).toString(16)}}`);
}
