"""Workers: handlers by type, and the loop that serves them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import json
import os
import re
import signal
import sys
import traceback
import urllib.parse
from typing import Any, Callable, Coroutine, Dict, List, NoReturn, Optional, Tuple, Union

from . import pattern
from .channel import Channel
from .event import Event, parse_json
from .heartbeat import Heartbeat
from .outcome import LONGEST_ANSWER, Outcome, Reject, Release, Retry, line_of

#: A function of one event: plain, ``async``, or a generator of either kind.
Handler = Callable[[Event], Any]

#: For how many types it is kept which handler they have.
_KNOWN_TYPES = 1024

#: How greenroom begins a line.
_TOKEN = re.compile(rb'\{"token": ?"([0-9A-Za-z_-]+)"')


class Worker:
    """Handlers by type, for one process.

    ::

        worker = Worker(source="/prices")

        @worker.on("order.placed")
        def placed(event):
            return event.derive("price.set", {"total": 7})

        worker.run()

    :param source: the ``source`` of the events that handlers derive; ``/workers/NAME`` for a
        program ``NAME.py`` otherwise
    :param heartbeat: seconds between two signs of life while an event is in hand; none otherwise
    :param recycle_after: so many events, then the process ends, and greenroom starts a fresh one
    """

    def __init__(
        self,
        *,
        source: Optional[str] = None,
        heartbeat: Optional[float] = None,
        recycle_after: Optional[int] = None,
    ) -> None:
        if heartbeat is not None and not heartbeat > 0:
            raise ValueError("`heartbeat` must be more than 0 seconds")
        if recycle_after is not None and not (isinstance(recycle_after, int) and recycle_after > 0):
            raise ValueError("`recycle_after` must be a whole number above 0")
        self.source = source or _source_of_this_program()
        self._heartbeat = heartbeat
        self._recycle_after = recycle_after
        self._handlers: List[Tuple[List[str], Handler]] = []
        self._known: Dict[str, Optional[Handler]] = {}

    def on(self, *patterns: str) -> Callable[[Handler], Handler]:
        """The function below is for events of these types: ``order.placed``, ``order.*`` (one
        segment) or ``order.**`` (any number). The most specific pattern wins.

        :raises ValueError: no pattern, one that cannot be used, or one that is there already
        """
        if not patterns or not all(isinstance(given, str) for given in patterns):
            raise ValueError('name the types: @worker.on("order.placed")')

        def register(handler: Handler) -> Handler:
            if not callable(handler):
                raise TypeError("the handler must be a function")
            for text in patterns:
                segments = pattern.parse(text)
                if any(segments == taken for taken, _ in self._handlers):
                    raise ValueError(f"there is a handler for {text!r} already")
                self._handlers.append((segments, handler))
            self._known.clear()
            return handler

        return register

    def run(self) -> None:
        """Handles events until greenroom closes standard input or sends SIGTERM; returns when
        what was in hand is done. Clean up behind it.

        Run by hand in a terminal, it says what to do instead, and ends with code 2.
        """
        _refuse_terminal()
        self._expect_handlers()
        if any(_is_async(handler) for _, handler in self._handlers):
            asyncio.run(self.serve())
        else:
            self._serve_plainly()

    async def serve(self) -> None:
        """As :meth:`run`, within an event loop: for a program that opens connections there."""
        _refuse_terminal()
        self._expect_handlers()
        channel = Channel.open()
        channel.make_wakeable()
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGTERM, channel.stop)
        except (NotImplementedError, RuntimeError, ValueError):
            channel.stop_at_sigterm()
        session = _Session(self, channel)
        with concurrent.futures.ThreadPoolExecutor(1, "greenroom-input") as reader:
            try:
                while not session.is_over():
                    line = await loop.run_in_executor(reader, channel.read_line)
                    if line is None:
                        return
                    event, token = session.begin(line)
                    session.end(token, await self._outcome(event))
            finally:
                channel.stop()

    def _serve_plainly(self) -> None:
        channel = Channel.open()
        channel.stop_at_sigterm()
        session = _Session(self, channel)
        while not session.is_over():
            line = channel.read_line()
            if line is None:
                return
            event, token = session.begin(line)
            session.end(token, run_plainly(self._outcome(event)))

    async def _outcome(self, event: Union[Event, Outcome]) -> Outcome:
        """What becomes of the event. Suspends only in a handler that does."""
        if isinstance(event, Outcome):
            return event
        handler = self._handler_of(event.type)
        if handler is None:
            return Outcome.of(Reject(f"the worker has no handler for events of {event.type!r}"))
        try:
            result = handler(event)
            if inspect.isawaitable(result):
                _expect_loop(result)
                result = await result
            return await _outcome_of(event, result)
        except SystemExit as leaving:
            # Code 0 would say that the process had nothing in hand.
            if leaving.code not in (None, 0):
                raise
            traceback.print_exc()
            _give_up("the handler ended the process with an event in hand; raise an error instead")
        except (Exception, asyncio.CancelledError) as error:
            return Outcome.of(error)

    def _handler_of(self, type: str) -> Optional[Handler]:
        if type not in self._known:
            found = [taken for taken in self._handlers if pattern.covers(taken[0], type)]
            best = max(found, key=lambda taken: pattern.specificity(taken[0]), default=None)
            if len(self._known) >= _KNOWN_TYPES:
                self._known.clear()
            self._known[type] = best[1] if best else None
        return self._known[type]

    def _expect_handlers(self) -> None:
        if not self._handlers:
            raise RuntimeError('the worker has no handler; add one with @worker.on("**")')


class _Session:
    """The events of one process, one after the other."""

    def __init__(self, worker: Worker, channel: Channel) -> None:
        self._worker = worker
        self._channel = channel
        interval = worker._heartbeat
        self._heartbeat = Heartbeat(channel, interval) if interval else None
        self._handled = 0
        self._is_spent = False

    def is_over(self) -> bool:
        """Whether the process has had as many events as it should, or is out of memory."""
        return self._is_spent or self._handled == self._worker._recycle_after

    def begin(self, line: bytes) -> Tuple[Union[Event, Outcome], str]:
        """The event of this line, or what becomes of one that cannot be read; and its token."""
        if self._heartbeat:
            self._heartbeat.begin()
        return read_or_outcome(line, self._worker.source)

    def end(self, token: str, outcome: Outcome) -> None:
        """Tells greenroom."""
        if self._heartbeat:
            self._heartbeat.end()
        try:
            tell(outcome)
            line = line_or_reject(token, outcome)
        except MemoryError as error:
            outcome = Outcome.of(error)
            line = line_of(token, outcome)
        self._handled += 1
        try:
            self._channel.write_line(line)
        except BrokenPipeError:
            _give_up("greenroom is gone: it has closed the worker's standard output")
        if isinstance(outcome.exception, MemoryError):
            # What the handler keeps would make every event after this one fail as well.
            self._is_spent = True
            print("out of memory: this process ends, and greenroom starts another", file=sys.stderr)


def run(
    handler: Handler,
    *,
    source: Optional[str] = None,
    heartbeat: Optional[float] = None,
    recycle_after: Optional[int] = None,
) -> None:
    """Serves one function that handles every type; see :class:`Worker` and :meth:`Worker.run`."""
    worker = Worker(source=source, heartbeat=heartbeat, recycle_after=recycle_after)
    worker.on("**")(handler)
    worker.run()


def read(line: bytes, source: str) -> Tuple[Event, str]:
    """The event of a line from greenroom, and its token. Ends the process if there is none."""
    try:
        text = line.decode("utf-8")
        request = parse_json(text)
        token, attempt = request["token"], request["attempt"]
        fence = request.get("greenroom-fence")
        fenced = "" if fence is None else f'"greenroom-fence":{fence},'
        head = f'{{"token":"{token}","attempt":{attempt},{fenced}"event":'
        is_usual = text.startswith(head) and text.endswith("}")
        raw = text[len(head) : -1] if is_usual else json.dumps(request["event"])
        return Event._from_members(request["event"], raw, attempt, source, fence), token
    except (KeyError, TypeError, ValueError) as error:
        _give_up(
            f"a line on standard input is no event from greenroom ({type(error).__name__}: "
            f"{error}): {line[:200]!r}\n{_HOW_TO_TRY.format(name=_program())}"
        )


def read_or_outcome(line: bytes, source: str) -> Tuple[Union[Event, Outcome], str]:
    """As :func:`read`. An event that Python cannot read is answered: it ends no process."""
    try:
        return read(line, source)
    except (RecursionError, MemoryError) as error:
        token = _TOKEN.match(line)
        if not token:
            raise
        cause: BaseException = error
        if isinstance(error, RecursionError):
            cause = Reject("the event is nested too deeply for Python to read")
        return Outcome.of(cause), token.group(1).decode("ascii")


def line_or_reject(token: str, outcome: Outcome) -> bytes:
    """The line for greenroom. An output that cannot be sent rejects the event: another attempt
    would bring the same."""
    try:
        line = line_of(token, outcome)
    except (TypeError, ValueError, RecursionError) as error:
        why = f"an event that the handler returned cannot be written: {error}"
    else:
        if len(line) <= LONGEST_ANSWER:
            return line
        why = f"what the handler returned has {len(line)} bytes, more than {LONGEST_ANSWER}"
    print(why, file=sys.stderr)
    return line_of(token, Outcome.of(Reject(why)))


def run_plainly(coroutine: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Runs a coroutine that does not suspend."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        outcome: Outcome = done.value
        return outcome
    coroutine.close()
    raise RuntimeError("a handler that is not `async` has suspended")


def tell(outcome: Outcome) -> None:
    """The traceback of what was not expected, on standard error."""
    error = outcome.exception
    if error is not None and not isinstance(error, (Retry, Reject, Release)):
        traceback.print_exception(type(error), error, error.__traceback__)
        sys.stderr.flush()


async def _outcome_of(event: Event, result: Any) -> Outcome:
    if result is None:
        return Outcome("success")
    if result is event and not event._is_changed():
        return Outcome("pass")
    if isinstance(result, Event):
        return Outcome("success", [result])
    if hasattr(result, "__aiter__"):
        events = [found async for found in result]
    elif hasattr(result, "__iter__") and not isinstance(result, (str, bytes, dict)):
        events = list(result)
    else:
        raise Reject(f"a handler returns None, an Event or several, not {type(result).__name__}")
    for found in events:
        if not isinstance(found, Event):
            raise Reject(f"a handler returned {type(found).__name__} among its events")
    return Outcome("success", events)


def _expect_loop(result: Any) -> None:
    """An awaitable from a handler that does not look like one needs an event loop as well."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        if inspect.iscoroutine(result):
            result.close()
        raise Reject("the handler returned an awaitable; declare it with `async def`") from None


def _is_async(handler: Handler) -> bool:
    inner: Any = handler
    while hasattr(inner, "func"):
        inner = inner.func
    call = getattr(inner, "__call__", None)
    return any(
        inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found)
        for found in (inner, call)
    )


def _source_of_this_program() -> str:
    stem = os.path.splitext(_program())[0]
    return "/workers/" + urllib.parse.quote(stem, safe="")


def _program() -> str:
    return os.path.basename(sys.argv[0] if sys.argv else "") or "worker.py"


_HOW_TO_TRY = """\
One event by hand:
  echo '{{"token":"1","attempt":1,"event":{{"specversion":"1.0","id":"1","source":"/me","type":"t"}}}}' \
| python3 {name}
For tests there is greenroom_worker.testing."""

_IN_A_TERMINAL = """\
{name} is a worker: greenroom starts it and writes events to its standard input, which is a
terminal here. In greenroom.yaml:
  handlers:
    prices: {{ on: order.placed, exec: {{ command: ["python3", "{name}"] }} }}
Then: greenroom run greenroom.yaml
{try_it}"""


def _refuse_terminal() -> None:
    if os.isatty(0):
        name = _program()
        text = _IN_A_TERMINAL.format(name=name, try_it=_HOW_TO_TRY.format(name=name))
        print(text, file=sys.stderr)
        sys.exit(2)


def _give_up(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    sys.exit(1)
