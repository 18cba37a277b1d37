"""Workers for Greenroom's ``exec`` handler: a handler is one function with a typed event.

::

    from greenroom_worker import Event, Reject, run

    def price(event: Event):
        if event.data["count"] < 1:
            raise Reject("nothing was ordered")
        return event.derive("price.set", {"total": event.data["price"] * event.data["count"]})

    run(price)

What the handler returns decides what follows:

========================  ====================================================================
``None``                  the event is handled
the event itself          the event is handled, and goes to the outputs as it came
an :class:`Event`         the event is handled, and this one goes to the outputs
a list or an iterator     the same with several events, in their order
``raise Retry(after=5)``  another attempt, in five seconds; without ``after`` by the backoff
``raise Reject(reason)``  no attempt will help: a dead letter
``raise Release()``       not begun: tried again soon, and no attempt is counted
any other exception       a failure: another attempt by the backoff
========================  ====================================================================
"""

from .channel import open_under_greenroom
from .event import Event, ExtensionValue
from .outcome import Outcome, Reject, Release, Retry
from .worker import Handler, Worker, run

__version__ = "0.1.0"

open_under_greenroom()

__all__ = [
    "Event",
    "ExtensionValue",
    "Handler",
    "Outcome",
    "Reject",
    "Release",
    "Retry",
    "Worker",
    "run",
]
