"""Patterns over event types, as greenroom has them: ``*`` is one segment, ``**`` any number."""

from __future__ import annotations

from typing import List, Tuple


def parse(pattern: str) -> List[str]:
    """The segments of a pattern.

    :raises ValueError: a segment is empty, or has a star beside other characters
    """
    segments = pattern.split(".")
    for segment in segments:
        if not segment:
            raise ValueError(f"the pattern {pattern!r} has an empty segment")
        if "*" in segment and segment not in ("*", "**"):
            raise ValueError(f"in the pattern {pattern!r} a star stands beside other characters")
    return segments


def covers(pattern: List[str], type: str) -> bool:
    """Whether the pattern covers this type."""
    words = type.split(".")
    at = word = 0
    behind, resume = -1, 0
    while True:
        if at < len(pattern) and pattern[at] == "**":
            at += 1
            behind, resume = at, word
        elif at < len(pattern) and word < len(words) and pattern[at] in ("*", words[word]):
            at += 1
            word += 1
        elif at == len(pattern) and word == len(words):
            return True
        elif word == len(words) or behind < 0:
            return False
        else:
            # The last `**` takes one word more.
            resume += 1
            at, word = behind, resume


def specificity(pattern: List[str]) -> Tuple[bool, int, int, int]:
    """The greatest wins: no star, then more literal segments, then ``*``, then fewer ``**``."""
    any_number = pattern.count("**")
    single = pattern.count("*")
    literal = len(pattern) - any_number - single
    return (any_number + single == 0, literal, single, -any_number)
