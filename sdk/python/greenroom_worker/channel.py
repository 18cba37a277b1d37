"""The two pipes to greenroom, kept apart from what the handler prints and reads."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from typing import Any, List, Optional

_CHUNK = 64 * 1024

#: greenroom sets this for its workers.
_UNDER_GREENROOM = "GREENROOM_PROTOCOL"

#: There is one at most: the pipes are those of the process.
_opened: Optional[Channel] = None


def open_under_greenroom() -> None:
    """Takes the pipes over at once where greenroom has started this process, so that what is
    printed before the worker runs does no harm. Child processes are not workers."""
    if os.environ.pop(_UNDER_GREENROOM, None) is not None:
        Channel.open()


def _redirect() -> None:
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    stdout: Any = sys.stdout
    if stdout is not None:
        # What was printed before and lies in the buffer goes to standard error, too.
        stdout.flush()
        if hasattr(stdout, "reconfigure"):
            stdout.reconfigure(line_buffering=True, errors="backslashreplace")


class Channel:
    """Lines from greenroom and lines to it.

    ``print`` would break the protocol and ``input`` would take events away. So both pipes move
    to other descriptors, which child processes do not inherit; descriptor 1 becomes standard
    error, and descriptor 0 is empty.
    """

    def __init__(self, input: int, output: int) -> None:
        self._input = input
        self._output = output
        self._lock = threading.Lock()
        self._parts: List[bytes] = []
        self._rest = b""
        self._wake: Optional[List[int]] = None
        self._stopping = False

    @classmethod
    def open(cls) -> Channel:
        """Takes standard input and standard output over, for the rest of the process."""
        global _opened
        if _opened is None:
            _opened = cls(os.dup(0), os.dup(1))
            _redirect()
        return _opened

    def stop(self) -> None:
        """No further line is read. May be called by a signal handler."""
        self._stopping = True
        if self._wake:
            os.write(self._wake[1], b"x")

    def stop_at_sigterm(self) -> None:
        """SIGTERM means: finish what is in hand. A handler that the program has set stays."""
        self.make_wakeable()
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: self.stop())
            if self._wake:
                # For a signal that comes just before the thread begins to wait.
                signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)

    def make_wakeable(self) -> None:
        """:meth:`stop` is heard while a line is waited for. Not on Windows, where a pipe cannot
        be waited for."""
        if self._wake is None and os.name == "posix":
            self._wake = list(os.pipe())
            for end in self._wake:
                os.set_blocking(end, False)

    def read_line(self) -> Optional[bytes]:
        """The next line without its end; ``None`` at the end of input, and after a stop."""
        while True:
            if self._stopping:
                return None
            line, found, rest = self._rest.partition(b"\n")
            self._parts.append(line)
            self._rest = rest
            if found:
                whole = b"".join(self._parts)
                self._parts = []
                return whole
            self._rest = self._read()
            if not self._rest:
                # A line without its end is one that greenroom did not finish.
                return None

    def _read(self) -> bytes:
        while self._wake:
            ready, _, _ = select.select([self._input, self._wake[0]], [], [])
            if self._stopping:
                return b""
            if self._input in ready:
                break
            os.read(self._wake[0], _CHUNK)
        return os.read(self._input, _CHUNK)

    def write_line(self, line: bytes) -> None:
        """Writes a whole line, whatever other threads write.

        :raises BrokenPipeError: greenroom is gone
        """
        with self._lock:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._output, rest) :]
