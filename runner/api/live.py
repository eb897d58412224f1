"""The real edges of a run: models, tools, hooks and programs as a spec names them."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.api.tooling import Names as Names
from runner.api.tooling import ToolEntry as ToolEntry
from runner.engine.contract import Model, Price, Provider, Retry, Tool
from runner.spec.decode import to_json
from runner.spec.loaded import Loaded
from runner.spec.model.provider import ApiKey, ModelChoice
from runner.spec.template import Template, is_plain
from runner.toolkit.outputs import NAME as OUTPUTS
from runner.toolkit.outputs import Outputs

if TYPE_CHECKING:
    from runner.api.asking import Person
    from runner.api.mcp import Servers
    from runner.api.options import Ask, Control
    from runner.engine.hook import Hook, Hooks
    from runner.engine.plan import Unavailable
    from runner.engine.sub_agent import AgentTool
    from runner.expect import Check
    from runner.hooks.permission import Answer
    from runner.log.redact import LogRedactor
    from runner.spec.model.tool import McpTools

CHECK_SECONDS = 60.0
"""How long a program may take to judge a result."""
UNLIMITED = frozenset(("scripted", "local"))
"""Providers that no server stands behind which could refuse a request."""
FREE = Price()
"""What a model on this machine costs."""
NATIVE_OUTPUT = frozenset(("openai", "openai-responses", "anthropic", "google"))
"""Providers that can be told the schema of an answer."""


class Live:
    """Makes what a run reaches out with.

    Args:
        environ: The environment that the run sees.
        workspace: Where programs run and file tools stay.
        redactor: Is told each secret that becomes known; None where nothing is run.
        yes: Whether all that permissions ask is answered with yes.
        interactive: Whether a person can be asked who sits at the terminal.
        ask: Asks a person who does not.
        read_only: Whether nothing may be changed, whatever a spec says of itself.
        paced: Whether all runs of this process that do the same slow down together.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        workspace: Path,
        redactor: LogRedactor | None,
        *,
        yes: bool = False,
        interactive: bool = False,
        ask: Ask | None = None,
        read_only: bool = False,
        paced: bool = False,
    ) -> None:
        self._environ = environ
        self.workspace = workspace
        self._redactor = redactor
        self._yes = yes
        self._terminal: Answer | None = None
        self._interactive = interactive
        self._person: Person | None = None
        if ask is not None:
            from runner.api.asking import Person

            self._person = Person(ask, redactor)
        self._read_only = read_only
        self._paced = paced
        self.outputs = Outputs()
        """Where outputs are kept that are too long for a model."""
        self._secrets: dict[str, str] = {}
        self._secret_names: set[str] = set()

    # --- secrets ----------------------------------------------------------------------------------

    def keep_secret(self, name: str, value: str) -> None:
        """Keep a value out of logs, events, errors and the environment of children."""
        if not value or self._secrets.get(name) == value:
            return
        self._secrets[name] = value
        if self._redactor is not None:
            self._redactor.add(name, value)

    def environment(self, folder: str, *, bare: bool) -> dict[str, str]:
        """The environment of a program that a spec in a folder starts, with nothing secret in it.

        Args:
            folder: The spec's, which the program finds as ``PI_RUN_SPEC_DIR``.
            bare: Whether it has but the few variables that any program needs.
        """
        from runner.process import environment_of
        from runner.providers import keys

        kept = environment_of(
            {**os.environ, **self._environ},
            bare=bare,
            secret_names={*self._secret_names, *keys.all_names()},
            secret_values=self._secrets.values(),
        )
        outputs = self.outputs.folder
        own = {"PI_RUN_SPEC_DIR": folder}
        return {**kept, **own, **({OUTPUTS: str(outputs)} if outputs is not None else {})}

    # --- models -----------------------------------------------------------------------------------

    def model(self, loaded: Loaded, path: str, choice: ModelChoice, names: Names) -> Model:
        """A model that can be asked.

        Args:
            loaded: The spec that chose it.
            path: Where it stands in the spec.
            choice: What the spec says of it.
            names: What its templates see.

        Raises:
            UsageError: for an unknown provider, or one that can't be had.
        """
        from runner import providers

        settings = _settings(loaded, path, choice, names)
        key = self._key(loaded, path, choice, settings.base_url)
        provider = self._at_its_rate(choice, settings, providers.create(settings))
        return model_of(choice, settings.id, provider, key)

    def _at_its_rate(self, choice: ModelChoice, settings: Any, provider: Provider) -> Provider:
        """What asks a model no faster than it may be asked."""
        limit = None
        if choice.rate is None:
            if not self._paced or choice.provider in UNLIMITED:
                return provider
        else:
            from runner.providers.rate import RateLimit

            limit = RateLimit(choice.rate.requests, choice.rate.tokens, choice.rate.per)
        from runner import json_text
        from runner.providers.gate import Gated

        source = json_text.line(to_json(choice.api_key))
        key = (choice.provider, settings.base_url, settings.id, source)
        return Gated(provider, key, limit, self)

    def _key(
        self, loaded: Loaded, path: str, choice: ModelChoice, base_url: str | None
    ) -> Callable[[], Any] | None:
        from runner.providers import keys

        if choice.api_key is not None:
            return self.key_source(loaded, f"{path}.api_key", choice.api_key, "api_key")
        source = keys.default_resolver(choice.provider, base_url, self._environ)
        self._secret_names.update(keys.default_names(choice.provider, base_url))
        name = f"{choice.provider} key"
        return None if source is None else self._remembering(name, source)

    def key_source(self, loaded: Loaded, path: str, given: ApiKey, name: str) -> Callable[[], Any]:
        """What gives a secret, now or when awaited; each is kept out of all that people read.

        Args:
            loaded: The spec.
            path: Where it says where the secret comes from.
            given: What it says there.
            name: What the secret is called where its source has no name.

        Raises:
            UsageError: where Python that it names can't be had.
        """
        from runner.providers import keys

        config = {key: value for key, value in to_json(given).items() if value is not None}
        function = None
        if given.python is not None:
            from runner.python_file import load_callable

            function = load_callable(given.python, Path(loaded.folder_of(path)))
        if given.env is not None:
            name = given.env
            self._secret_names.add(name)
            self.keep_secret(name, self._environ.get(name, ""))
        source = keys.resolver(
            config,
            folder=Path(loaded.folder_of(path)),
            workspace=self.workspace,
            function=function,
            environ=self._environ,
        )
        return self._remembering(name, source)

    def _remembering(self, name: str, source: Callable[[], Any]) -> Callable[[], Any]:
        """A source of keys of which each key is kept secret before anyone else has it."""

        async def later(key: Awaitable[str | None]) -> str | None:
            return known(await key)

        def known(key: str | None) -> str | None:
            if key:
                self.keep_secret(name, key)
            return key

        def read() -> Any:
            key = source()
            return known(key) if isinstance(key, str) or key is None else later(key)

        return read

    # --- hooks and expectations -------------------------------------------------------------------

    def hooks(self, loaded: Loaded, names: Names, answer: Answer | None = None) -> Hooks:
        """The hooks of a spec; ``answer`` decides of what its permissions ask for.

        Raises:
            UsageError: where Python that it names can't be had.
        """
        from runner.api.hooking import make_hooks

        return make_hooks(self, loaded, names, answer)

    def hook(self, loaded: Loaded, path: str, entry: Any, names: Names) -> Hook:
        """One hook of a spec.

        Raises:
            UsageError: where Python that it names can't be had.
        """
        from runner.api.hooking import make_hook

        return make_hook(self, loaded, path, entry, names)

    def permission(self, loaded: Loaded, answer: Answer | None = None) -> Hook | None:
        """The hook that holds calls against a spec's permissions; None where it has none.

        Args:
            loaded: The spec.
            answer: Decides of what is asked for, instead of a person or what the spec says.
        """
        from runner.engine.hook import Hook
        from runner.hooks import permission

        wanted = loaded.spec.permissions
        if wanted is None:
            return None
        rules = permission.Rules.read(wanted.allow or (), wanted.ask or (), wanted.deny or ())
        nobody = permission.unattended(wanted.unattended == "stop")
        if answer is None and self._yes:
            answer = permission.always
        elif answer is None and self._person is not None:
            answer = self._person.permission(nobody, _preview)
        elif answer is None and self._interactive:
            # One for all specs of a run, so that they don't ask at the same time.
            redact = self._redactor.text if self._redactor is not None else str
            answer = self._terminal = self._terminal or permission.Terminal(redact, _preview)
        asks = permission.permission_hook(rules, str(self.workspace), answer or nobody)
        return Hook(asks, has_last_word=True)

    def command_check(self, loaded: Loaded, path: str, argv: Sequence[str], names: Names) -> Check:
        """The check of an expectation that is a program."""
        from runner import expect, process

        where, folder = loaded.where(path), Path(loaded.folder_of(path))

        async def run(stdin: bytes) -> tuple[int, str]:
            program, *rest = (Template(item, where).render(names) for item in argv)
            finished = await process.run(
                [process.program_path(program, folder), *rest],
                cwd=self.workspace,
                env=self.environment(loaded.folder, bare=False),
                stdin=stdin,
                time_limit=CHECK_SECONDS,
            )
            if finished.timed_out:
                raise TimeoutError(f"it timed out after {CHECK_SECONDS:g} s")
            return finished.exit_code, finished.stderr or finished.stdout

        return expect.command(argv, run)

    # --- tools ------------------------------------------------------------------------------------

    def is_read_only(self, loaded: Loaded) -> bool:
        """Whether the tools of a spec may change nothing."""
        return self._read_only or bool(loaded.spec.read_only)

    @property
    def ask(self) -> Callable[[str], Awaitable[str]] | None:
        """Asks a person; None where nobody is there."""
        if self._person is not None:
            return self._person.answer
        return self._asked if self._interactive else None

    async def _asked(self, question: str) -> str:
        from runner.terminal import TERMINAL, visible

        redact = self._redactor.text if self._redactor is not None else str
        # Each line is marked, so that none can be taken for what pi-run itself asks.
        lines = visible(redact(question), lines=True).split("\n")
        return await TERMINAL.ask(
            "pi-run: the model asks:\n" + "\n".join(f"  | {x}" for x in lines)
        )

    def agent_tool(self, tool: AgentTool) -> Tool:
        """A tool that is an agent: as it is."""
        return tool

    def tool(self, loaded: Loaded, path: str, entry: ToolEntry, names: Names) -> Tool:
        """A tool of a spec, but one that is an agent.

        Raises:
            UsageError: where it can't be had, or has no legal name.
        """
        from runner.api.tooling import make_tool

        return make_tool(self, loaded, path, entry, names)

    @functools.cached_property
    def servers(self) -> Servers:
        """The MCP servers of the run."""
        from runner.api.mcp import Servers

        return Servers(self, self._redactor.text if self._redactor is not None else str)

    def mcp_tools(
        self, loaded: Loaded, path: str, entry: McpTools, names: Names, taken: Collection[str]
    ) -> list[Tool]:
        """The tools of an MCP server, once it is started."""
        return self.servers.tools(loaded, path, entry, names, taken)

    async def start(self, control: Control | None = None) -> None:
        """Start the MCP servers that are known; an abort of the run that is to come ends that.

        Raises:
            RunError: where one does not start that has to.
        """
        if "servers" not in vars(self) or not self.servers.known:
            return
        from runner.api.mcp import needed, start_servers

        await start_servers(self.servers, control)
        needed(self.servers)

    async def close(self) -> None:
        """End what was started for the whole run."""
        if "servers" in vars(self):
            await self.servers.close()
        self.outputs.close()

    def unavailable(self, loaded: Loaded) -> list[Unavailable]:
        """What could not be had of the run's servers."""
        return self.servers.unavailable() if "servers" in vars(self) else []


async def _preview(call: Mapping[str, Any]) -> str | None:
    """What a call would change, for who is asked for it; None where its tool can't tell."""
    from runner.engine.session import current

    tell = getattr(current.get().tools.get(call["tool_name"]), "preview", None)
    said: str | None = None if tell is None else await tell(call["arguments"])
    return said


def model_of(
    choice: ModelChoice, model: str, provider: Provider, key: Callable[[], Any] | None
) -> Model:
    """What a spec chose, with what asks it and where its key comes from."""
    return Model(
        provider=provider,
        id=model,
        parameters=_parameters(choice),
        price=_price(choice, model),
        retry=Retry(choice.retry.attempts, choice.retry.max_delay),
        api_key=key,
    )


def model_id(loaded: Loaded, path: str, choice: ModelChoice, names: Names) -> str:
    """The id of the model that a spec chose."""
    text = choice.id or choice.provider
    return text if is_plain(text) else Template(text, loaded.where(f"{path}.id")).render(names)


def _settings(loaded: Loaded, path: str, choice: ModelChoice, names: Names) -> Any:
    from runner.providers.settings import ModelSettings

    def render(template: str, values: Mapping[str, Any]) -> str:
        return Template(template, loaded.where(f"{path}.script")).render({**names, **values})

    def text(key: str, value: str | None) -> str | None:
        if value is None or is_plain(value):
            return value
        return Template(value, loaded.where(f"{path}.{key}")).render(names)

    script = [] if choice.script is None else [_given(to_json(reply)) for reply in choice.script]
    return ModelSettings(
        provider=choice.provider,
        id=model_id(loaded, path, choice, names),
        base_url=text("base_url", choice.base_url),
        temperature=choice.temperature,
        max_output_tokens=choice.max_output_tokens,
        reasoning=choice.reasoning,
        connect_timeout=choice.timeout.connect,
        idle_timeout=choice.timeout.idle,
        options=choice.options,
        cache=choice.cache,
        script=script,
        render=render,
        path=None if choice.path is None else loaded.resolve(f"{path}.path", choice.path),
    )


def _given(data: dict[str, Any]) -> dict[str, Any]:
    """A map without what was not given."""
    return {
        key: [_given(item) if isinstance(item, dict) else item for item in value]
        if isinstance(value, list)
        else value
        for key, value in data.items()
        if value is not None
    }


def _parameters(choice: ModelChoice) -> dict[str, Any]:
    """All that shapes a request besides its messages, as JSON."""
    given = {
        "temperature": choice.temperature,
        "max_output_tokens": choice.max_output_tokens,
        "reasoning": choice.reasoning,
        "options": choice.options or None,
    }
    return {key: value for key, value in given.items() if value is not None}


def _price(choice: ModelChoice, model: str) -> Price | None:
    if choice.price is not None:
        price = choice.price
        return Price(price.input, price.output, price.cache_read, price.cache_write)
    if choice.provider in ("scripted", "local"):
        return FREE
    from runner.providers.prices import price as known

    return known(choice.provider, model)
