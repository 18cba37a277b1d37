// Characters that nobody sees, or that turn a text around, are shown by their numbers.

import { options } from "preact";

/** As `is_hidden` of greenroom-bus has them. */
const HIDDEN = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** From now on no text of the page hides any: `a\u{202e}b`. What is sent back stays as it came. */
export function startMarking(): void {
  options.vnode = (vnode) => {
    const node = vnode as { type: unknown; props: unknown };
    // The props of a text are the text.
    if (node.type !== null || typeof node.props !== "string") return;
    node.props = node.props.replace(HIDDEN, (hidden) => `\\u{${hidden.charCodeAt(0).toString(16)}}`);
  };
}
