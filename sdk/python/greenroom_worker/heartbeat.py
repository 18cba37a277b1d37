"""Lines that say the process lives."""

from __future__ import annotations

import threading

from .channel import Channel

_LINE = b'{"heartbeat":true}\n'


class Heartbeat:
    """Writes a heartbeat now and then while an event is in hand."""

    def __init__(self, channel: Channel, interval: float) -> None:
        self._channel = channel
        self._interval = interval
        self._in_hand = threading.Event()
        threading.Thread(target=self._beat, name="greenroom-heartbeat", daemon=True).start()

    def begin(self) -> None:
        """An event is in hand."""
        self._in_hand.set()

    def end(self) -> None:
        """Nothing is in hand."""
        self._in_hand.clear()

    def _beat(self) -> None:
        pause = threading.Event()
        while True:
            self._in_hand.wait()
            pause.wait(self._interval)
            if self._in_hand.is_set():
                try:
                    self._channel.write_line(_LINE)
                except OSError:
                    return
