"""What becomes of an event: what a handler raises, and what greenroom is told."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import timedelta
from typing import List, Optional, Union

from .event import Event

#: greenroom takes a longer line for a worker that has lost its line ends, and ends the worker.
LONGEST_ANSWER = 16 * 1024 * 1024

#: How much of an error is sent, in characters. greenroom keeps 4 KiB.
LONGEST_ERROR = 4096

#: The longest time until another attempt, in seconds: some thirty years.
LONGEST_WAIT = 10**9


class Retry(Exception):
    """Another attempt is to be made.

    :param reason: for the log and for the dead letter, if the last attempt fails as well
    :param after: when, in seconds or as a timedelta; by the configured backoff otherwise
    """

    def __init__(
        self, reason: str = "", *, after: Union[float, timedelta, None] = None
    ) -> None:
        super().__init__(reason)
        if isinstance(after, timedelta):
            after = after.total_seconds()
        if after is not None and not 0 <= after <= LONGEST_WAIT:
            raise ValueError(f"`after` must be 0 to {LONGEST_WAIT} seconds, not {after!r}")
        self.after: Optional[float] = after


class Reject(Exception):
    """No attempt will help: the event becomes a dead letter, with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class Release(Exception):
    """The event is given back as if it had not been begun: no attempt is counted."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


@dataclass(frozen=True)
class Outcome:
    """What greenroom is told of an event."""

    #: ``success``, ``pass``, ``failure``, ``reject`` or ``released``.
    kind: str
    #: What goes to the outputs, for ``success``.
    events: List[Event] = field(default_factory=list)
    error: Optional[str] = None
    #: Seconds until the next attempt, for ``failure``.
    retry_after: Optional[float] = None
    #: What the handler raised.
    exception: Optional[BaseException] = None

    @staticmethod
    def of(exception: BaseException) -> Outcome:
        """What follows from what a handler raised."""
        text = _text_of(exception)
        if isinstance(exception, Retry):
            return Outcome("failure", [], text or None, exception.after, exception)
        if isinstance(exception, Reject):
            return Outcome("reject", [], text or None, None, exception)
        if isinstance(exception, Release):
            return Outcome("released", [], text or None, None, exception)
        name = type(exception).__name__
        return Outcome("failure", [], f"{name}: {text}" if text else name, None, exception)


def _text_of(exception: BaseException) -> str:
    try:
        return str(exception)
    except Exception:
        return "an error without a text"


def line_of(token: str, outcome: Outcome) -> bytes:
    """The line for greenroom, with its end."""
    parts = [f'{{"token":{json.dumps(token)},"outcome":"{outcome.kind}"']
    if outcome.events:
        parts.append(',"events":[' + ",".join(e.to_json() for e in outcome.events) + "]")
    if outcome.error:
        parts.append(',"error":' + json.dumps(_sendable(outcome.error)))
    if outcome.retry_after is not None:
        parts.append(f',"retry_after_ms":{math.ceil(outcome.retry_after * 1000)}')
    parts.append("}\n")
    # An event that came in keeps its text, which may have raw line breaks between its tokens.
    return "".join(parts).replace("\n", " ").encode("utf-8")[:-1] + b"\n"


def _sendable(text: str) -> str:
    """Without lone surrogates, which greenroom takes for no JSON, and not without end."""
    return text[:LONGEST_ERROR].encode("utf-8", "replace").decode("utf-8")
