"""llama.cpp servers, one for each model file, shared by all runs of this process."""

from __future__ import annotations

import atexit
import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path

from runner.error import ProviderError

CONTEXT_TOKENS = 8192
"""How much a model reads and writes at most, in one request."""

_PROGRAM = Path(__file__).with_name("local_process.py")

_servers: dict[Path, LocalServer] = {}
_lock = threading.Lock()


class LocalServer:
    """The server of one model file: started by the first request, ended by the last user."""

    def __init__(self, model: Path, template: Path | None) -> None:
        self._model = model
        self._template = template
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""
        self._starting = threading.Lock()
        self._stopped = False
        self._users = 0

    @classmethod
    def hold(cls, model: Path, template: Path | None) -> LocalServer:
        """The server of a model file, for one user more. Nothing is started yet."""
        with _lock:
            if not _servers:
                # Twice is once: a function that is registered again is only called again.
                atexit.unregister(_stop_all)
                atexit.register(_stop_all)
            server = _servers.setdefault(model, cls(model, template))
            server._users += 1
            return server

    def release(self) -> None:
        """One user less; the server ends with the last one."""
        with _lock:
            self._users -= 1
            last = self._users <= 0
        if last:
            self.stop()

    def url(self) -> str:
        """Where the server listens, after it was started if it doesn't run.

        Blocks as long as the model takes to load; `stop` ends that.

        Raises:
            ProviderError: where it can't be started.
        """
        with self._starting:
            if self._process is not None and self._process.poll() is None and self._url:
                return self._url
            self._end()
            self._url = self._start()
            return self._url

    def stop(self) -> None:
        """End the server, or its start. Who asks for the model after that gets another one."""
        with _lock:
            if _servers.get(self._model) is self:
                del _servers[self._model]
        self._stopped = True
        self._end()

    def _start(self) -> str:
        arguments = [str(self._model), str(CONTEXT_TOKENS)]
        if self._template is not None:
            arguments.append(str(self._template))
        process = subprocess.Popen(
            # -P: the program's own folder is not where its imports come from.
            [sys.executable, "-P", str(_PROGRAM), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # An interrupt of the terminal is for who started it, who will end it.
            start_new_session=True,
        )
        self._process = process
        assert process.stdout is not None
        line = b"" if self._stopped else process.stdout.readline()
        if self._stopped:
            self._end()
            raise ProviderError("the local model was ended while it was being loaded", "server")
        if not line:
            status = process.wait()
            self._end()
            raise self._fault(f"llama.cpp ended with status {status}")
        told = json.loads(line)
        if "url" not in told:
            self._end()
            raise self._fault(told["error"])
        url: str = told["url"]
        return url

    def _fault(self, why: str) -> ProviderError:
        return ProviderError(
            f"the model {self._model} can't be loaded: {why}", "server", retryable=False
        )

    def _end(self) -> None:
        process, self._process, self._url = self._process, None, ""
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()


def _stop_all() -> None:
    for server in list(_servers.values()):
        server.stop()
