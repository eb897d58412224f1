"""Queues of messages that wait for their turn; filled from any thread, drained by the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Any, Literal

from runner.engine.event import Queued
from runner.engine.message import Message

QueueName = Literal["steering", "follow_up"]
QueueMode = Literal["all", "one_at_a_time"]


class MessageQueues:
    """The two queues of an agent, and what joined them and was not told yet.

    One lock for all of it: what is told and what is queued always agree.

    Args:
        steering: The mode of the steering queue.
        follow_up: The mode of the follow-up queue.
    """

    def __init__(self, steering: QueueMode, follow_up: QueueMode) -> None:
        self._lock = Lock()
        self._news: list[tuple[QueueName, str, Message]] = []
        self.steering = MessageQueue("steering", steering, self._lock, self._news)
        self.follow_up = MessageQueue("follow_up", follow_up, self._lock, self._news)

    @property
    def has_news(self) -> bool:
        """Whether a message joined a queue and was not told yet."""
        return bool(self._news)

    def news(self) -> list[tuple[QueueName, str, Message]]:
        """What joined since the last time: the queue, the source and the message, in order."""
        with self._lock:
            return self._take_news()

    def last_news(self) -> tuple[list[tuple[QueueName, str, Message]], list[Queued]]:
        """The news, and what is queued at the same moment."""
        with self._lock:
            queued: list[Queued] = [
                {"queue": queue.name, "message": without_id(message)}
                for queue in (self.steering, self.follow_up)
                for message in queue._messages
            ]
            return self._take_news(), queued

    def _take_news(self) -> list[tuple[QueueName, str, Message]]:
        news = list(self._news)
        self._news.clear()
        return news

    def clear(self) -> None:
        """Forget all that is queued."""
        with self._lock:
            self._news.clear()
            self.steering._messages.clear()
            self.follow_up._messages.clear()


class MessageQueue:
    """Messages in the order in which they came. Each is taken exactly once.

    Args:
        name: As it stands in events.
        mode: Whether `drain` takes all that is there, or one message at a time.
        lock: Held for each change.
        news: Gets an entry for each message that joins, for the loop to tell.
    """

    def __init__(
        self,
        name: QueueName,
        mode: QueueMode,
        lock: Lock,
        news: list[tuple[QueueName, str, Message]],
    ) -> None:
        self.name: QueueName = name
        self.mode: QueueMode = mode
        self._messages: deque[Message] = deque()
        self._news = news
        self._lock = lock

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


def without_id(message: Message) -> dict[str, Any]:
    """A queued message as it is told: it gets its id when it joins the history."""
    return {key: value for key, value in message.items() if key != "id"}
