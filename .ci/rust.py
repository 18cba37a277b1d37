"""Reads Rust as far as .ci/circles and .ci/house need it: tokens, where an item ends, what is a test, which file a module is in."""
import os
import re

TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
    | (?P<raw>[bc]?r(?P<hashes>\#*)".*?"(?P=hashes))
    | (?P<string>[bc]?"(?:\\.|[^"\\])*")
    | (?P<char>b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])')
    | (?P<lifetime>'\w+)
    | (?P<name>(?:r\#)?[A-Za-z_]\w*)
    | (?P<number>\d\w*)
    | (?P<sign>::|.)
    """,
    re.X | re.S,
)


def without_comments(text):
    """Block comments nest, which no regular expression follows. Strings and the numbers of lines are kept as they are."""
    parts, at = [], 0
    pattern = re.compile(r'/\*|//[^\n]*|[bc]?r(#*)".*?"\1|[bc]?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    while match := pattern.search(text, at):
        parts.append(text[at : match.start()])
        at = match.end()
        if match[0] != "/*":
            parts.append(match[0])
            continue
        depth, begin = 1, at
        while depth and (mark := re.compile(r"/\*|\*/").search(text, at)):
            depth += 1 if mark[0] == "/*" else -1
            at = mark.end()
        parts.append("\n" * text.count("\n", begin, at))
    return "".join(parts) + text[at:]


class Token(str):
    """A name or a sign, with the line that it is on."""

    line = 0


def tokens(text):
    """Names and signs. Of literals only that there is one, and what is in a string."""
    found, line, counted = [], 1, 0
    text = without_comments(text)
    for match in TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "hashes" else "raw"
        if kind == "space":
            continue
        if kind in ("name", "sign"):
            token = Token(match[0].removeprefix("r#"))
        elif kind in ("string", "raw"):
            token = Token('"' + match[0].strip('bcr#"'))
        else:
            token = Token("0")
        line += text.count("\n", counted, match.start())
        counted, token.line = match.start(), line
        found.append(token)
    return found


OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, set(")]}")


def closing(toks, at):
    """The place of the bracket that closes the one here."""
    depth = 0
    for place in range(at, len(toks)):
        if toks[place] in OPEN:
            depth += 1
        elif toks[place] in CLOSE:
            depth -= 1
            if depth == 0:
                return place
    return len(toks) - 1


def end_of_item(toks, at):
    """Behind the item that begins here: after its `;`, or its braces."""
    while at < len(toks):
        if toks[at] == ";":
            return at + 1
        if toks[at] == "{":
            end = closing(toks, at) + 1
            # `use a::{b};` and `const A: T = T { .. };` end with the semicolon.
            return end + 1 if end < len(toks) and toks[end] == ";" else end
        at = closing(toks, at) + 1 if toks[at] in OPEN else at + 1
    return at


def is_test(attribute):
    """`#[cfg(test)]`, `#[cfg(all(test, ..))]`, `#[test]`, `#[tokio::test]`; not `#[cfg(not(test))]`."""
    if attribute[:1] == ["cfg"]:
        return "test" in attribute and "not" not in attribute
    head = attribute[: attribute.index("(")] if "(" in attribute else attribute
    return head[-1:] == ["test"]


def file_of_module(parent, folder, name, attributes):
    """The file of `mod name;` in the file `parent`, whose modules lie in `folder`."""
    given = [attribute[-1][1:] for attribute in attributes if attribute[:2] == ["path", "="]]
    places = [os.path.join(folder, name + ".rs"), os.path.join(folder, name, "mod.rs")]
    if given:
        places = [os.path.join(os.path.dirname(parent), given[0])]
    file = next((place for place in places if os.path.exists(place)), None)
    if file is None:
        raise SystemExit(f"error: {parent}: the module {name} has no file")
    return file
