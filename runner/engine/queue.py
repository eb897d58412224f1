"""Queues of messages that wait for their turn; filled from any thread, drained by the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Literal

from runner.engine.message import Message

QueueName = Literal["steering", "follow_up"]
QueueMode = Literal["all", "one_at_a_time"]

News = deque[tuple[QueueName, str, Message]]
"""What was queued and is not told yet: the queue, the source and the message."""


class MessageQueue:
    """Messages in the order in which they came. Each is taken exactly once.

    Args:
        name: As it stands in events.
        mode: Whether `drain` takes all that is there, or one message at a time.
        news: Gets an entry for each message, in order, for the loop to tell.
    """

    def __init__(self, name: QueueName, mode: QueueMode, news: News) -> None:
        self.name: QueueName = name
        self.mode: QueueMode = mode
        self._messages: deque[Message] = deque()
        self._news = news
        # Held while a message and its news are put, so that both have one order.
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: Message, source: str) -> None:
        """Add a message, from any thread."""
        with self._lock:
            self._messages.append(message)
            self._news.append((self.name, source, message))

    def drain(self) -> list[Message]:
        """Take what the mode gives: all messages, or the first."""
        with self._lock:
            if self.mode == "one_at_a_time":
                return [self._messages.popleft()] if self._messages else []
            taken = list(self._messages)
            self._messages.clear()
            return taken

    def put_back(self, messages: Iterable[Message]) -> None:
        """Put messages that were taken, and not used, in front again."""
        with self._lock:
            self._messages.extendleft(reversed(list(messages)))

    def waiting(self) -> list[Message]:
        """What is queued, in order."""
        with self._lock:
            return list(self._messages)

    def clear(self) -> None:
        """Forget all that is queued."""
        with self._lock:
            self._messages.clear()
