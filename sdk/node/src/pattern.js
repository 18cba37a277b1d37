// Patterns over event types, as greenroom has them: `*` is one segment, `**` any number.

/** The segments of a pattern. */
export function parse(pattern) {
  const segments = pattern.split(".");
  for (const segment of segments) {
    if (segment === "") throw new TypeError(`the pattern "${pattern}" has an empty segment`);
    if (segment.includes("*") && segment !== "*" && segment !== "**") {
      throw new TypeError(`in the pattern "${pattern}" a star stands beside other characters`);
    }
  }
  return segments;
}

/** Whether the pattern covers this type. */
export function covers(pattern, type) {
  const words = type.split(".");
  let [at, word, behind, resume] = [0, 0, -1, 0];
  for (;;) {
    if (pattern[at] === "**") {
      at += 1;
      [behind, resume] = [at, word];
    } else if (at < pattern.length && word < words.length && fits(pattern[at], words[word])) {
      at += 1;
      word += 1;
    } else if (at === pattern.length && word === words.length) {
      return true;
    } else if (word === words.length || behind < 0) {
      return false;
    } else {
      // The last `**` takes one word more.
      resume += 1;
      [at, word] = [behind, resume];
    }
  }
}

function fits(segment, word) {
  return segment === "*" || segment === word;
}

/**
 * Negative where `a` is more specific: no star, then more literal segments, then `*`, then fewer
 * `**`.
 */
export function bySpecificity(a, b) {
  const [left, right] = [specificity(a), specificity(b)];
  const at = left.findIndex((value, index) => value !== right[index]);
  return at < 0 ? 0 : right[at] - left[at];
}

function specificity(pattern) {
  const any = pattern.filter((segment) => segment === "**").length;
  const single = pattern.filter((segment) => segment === "*").length;
  return [Number(any + single === 0), pattern.length - any - single, single, -any];
}
