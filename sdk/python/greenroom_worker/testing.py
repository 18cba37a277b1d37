"""Handlers on events, without greenroom.

::

    from greenroom_worker.testing import event, handle

    def test_prices():
        outcome = handle(price, event("order.placed", {"price": 7, "count": 2}))
        assert outcome.kind == "success"
        assert outcome.events[0].data == {"total": 14}
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Union

from .event import Event
from .outcome import Outcome
from .worker import Handler, Worker, _is_async, line_or_reject, read, run_plainly, tell

__all__ = ["event", "handle"]


def event(type: str = "test.happened", data: Any = None, **attributes: Any) -> Event:
    """An event with the id ``1`` from ``/test``, unless ``attributes`` say otherwise."""
    return Event(**{"id": "1", "source": "/test", **attributes, "type": type, "data": data})


def handle(handler: Union[Handler, Worker], event: Event, *, attempt: int = 1) -> Outcome:
    """What greenroom would be told of this event: the handler gets it as it would come through
    the pipe, and its answer is what would go there.

    An exception of the handler does not leave this; it is the outcome's ``exception``.
    """
    worker = handler
    if not isinstance(worker, Worker):
        worker = Worker(source="/workers/test")
        worker.on("**")(handler)  # type: ignore[arg-type]
    line = f'{{"token":"1","attempt":{attempt},"event":{event.to_json()}}}'
    came, token = read(line.encode("utf-8"), worker.source)
    coroutine = worker._outcome(came)
    if any(_is_async(found) for _, found in worker._handlers):
        outcome = asyncio.run(coroutine)
    else:
        outcome = run_plainly(coroutine)
    tell(outcome)
    sent = json.loads(line_or_reject(token, outcome))
    if sent["outcome"] != outcome.kind:
        return Outcome(sent["outcome"], [], sent["error"])
    return outcome
