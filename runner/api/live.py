"""The real edges of a run: models, tools, hooks and programs as a spec names them."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import bundled
from runner.engine.contract import Model, Price, Provider, Retry, Tool
from runner.error import UsageError, did_you_mean
from runner.spec.decode import to_json
from runner.spec.loaded import Loaded
from runner.spec.model.provider import ModelChoice
from runner.spec.model.tool import CommandTool, PythonTool, UseTool
from runner.spec.template import Template

if TYPE_CHECKING:
    from runner.engine.hook import Hook, Hooks
    from runner.engine.sub_agent import AgentTool
    from runner.expect import Check
    from runner.hooks.permission import Answer
    from runner.log.redact import LogRedactor

CHECK_SECONDS = 60.0
"""How long a program may take to judge a result."""
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
        interactive: Whether a person can be asked.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        workspace: Path,
        redactor: LogRedactor | None,
        *,
        yes: bool = False,
        interactive: bool = False,
    ) -> None:
        self._environ = environ
        self.workspace = workspace
        self._redactor = redactor
        self._yes = yes
        self._terminal: Answer | None = None
        self._interactive = interactive
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

    def child_environment(self, folder: str) -> dict[str, str]:
        """The environment of a program that a spec in a folder starts."""
        from runner.process import child_environment

        added = {k: v for k, v in self._environ.items() if os.environ.get(k) != v}
        own = child_environment(
            Path(folder),
            secret_names=self._secret_names,
            secret_values=self._secrets.values(),
        )
        kept = {k: v for k, v in added.items() if v not in self._secrets.values()}
        return own | {k: v for k, v in kept.items() if k not in self._secret_names}

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
        key = self._key(loaded, f"{path}.api_key", choice, settings.base_url)
        return model_of(choice, settings.id, providers.create(settings), key)

    def _key(
        self, loaded: Loaded, path: str, choice: ModelChoice, base_url: str | None
    ) -> Callable[[], Any] | None:
        from runner.providers import keys

        if choice.api_key is None:
            name = f"{choice.provider} key"
            source = keys.default_resolver(choice.provider, base_url, self._environ)
            self._secret_names.update(keys.default_names(choice.provider, base_url))
        else:
            config = {k: v for k, v in to_json(choice.api_key).items() if v is not None}
            name = str(config.get("env", "api_key"))
            function = None
            if choice.api_key.python is not None:
                from runner.python_file import load_callable

                function = load_callable(choice.api_key.python, Path(loaded.folder_of(path)))
            if choice.api_key.env is not None:
                self._secret_names.add(choice.api_key.env)
                self.keep_secret(name, self._environ.get(choice.api_key.env, ""))
            source = keys.resolver(
                config,
                folder=Path(loaded.folder_of(path)),
                workspace=self.workspace,
                function=function,
                environ=self._environ,
            )
        return None if source is None else self._remembering(name, source)

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
        if answer is None and self._yes:
            answer = permission.always
        elif answer is None and self._interactive:
            # One for all specs of a run, so that they don't ask at the same time.
            redact = self._redactor.text if self._redactor is not None else str
            answer = self._terminal = self._terminal or permission.Terminal(redact)
        answer = answer or permission.unattended(wanted.unattended == "stop")
        return Hook(permission.permission_hook(rules, str(self.workspace), answer))

    def command_check(self, loaded: Loaded, path: str, argv: Sequence[str], names: Names) -> Check:
        """The check of an expectation that is a program."""
        from runner import expect, process

        where, folder = loaded.where(path), Path(loaded.folder_of(path))

        async def run(stdin: bytes) -> tuple[int, str]:
            program, *rest = (Template(item, where).render(names) for item in argv)
            finished = await process.run(
                [process.program_path(program, folder), *rest],
                cwd=self.workspace,
                env=self.child_environment(loaded.folder),
                stdin=stdin,
                time_limit=CHECK_SECONDS,
            )
            if finished.timed_out:
                raise TimeoutError(f"it timed out after {CHECK_SECONDS:g} s")
            return finished.exit_code, finished.stderr or finished.stdout

        return expect.command(argv, run)

    # --- tools ------------------------------------------------------------------------------------

    def agent_tool(self, tool: AgentTool) -> Tool:
        """A tool that is an agent: as it is."""
        return tool

    def tool(self, loaded: Loaded, path: str, entry: ToolEntry, names: Names) -> Tool:
        """A tool of a spec, but one that is an agent.

        Raises:
            UsageError: where it can't be had, or has no legal name.
        """
        if isinstance(entry, CommandTool):
            return self._command(loaded, path, entry, names)
        if isinstance(entry, PythonTool):
            from runner.python_file import load_callable

            folder = Path(loaded.folder_of(f"{path}.python"))
            return self._function(load_callable(entry.python, folder), loaded, entry)
        name = entry if isinstance(entry, str) else entry.use
        file = bundled.folder("tools") / f"{name}.py"
        if not name.isidentifier() or not file.is_file():
            known = did_you_mean(name, bundled.tool_names())
            raise UsageError(f'there is no built-in tool "{name}"; {known}')
        from runner.python_file import load_callable

        function = load_callable(f"{file}:{name}", file.parent)
        if isinstance(entry, str):
            return self._function(function, loaded, None)
        if entry.allow is not None:
            if name != "shell":
                raise UsageError(f"{name} takes no `allow`; only shell does")
            function = _narrowed(function, entry.allow)
        return self._function(function, loaded, entry)

    def _function(
        self, function: Callable[..., Any], loaded: Loaded, entry: PythonTool | UseTool | None
    ) -> Tool:
        from runner.toolkit.python import from_function

        return from_function(
            function,
            name=entry.name if entry else None,
            description=entry.description if entry else None,
            workspace=self.workspace,
            environment=lambda: self.child_environment(loaded.folder),
            **_options(entry),
        )

    def _command(self, loaded: Loaded, path: str, entry: CommandTool, names: Names) -> Tool:
        from runner.toolkit.command import CommandTool as Command

        where = loaded.where(f"{path}.command")

        def render(template: str, values: Mapping[str, Any]) -> str:
            return Template(template, where).render({**names, **values})

        return Command(
            entry.name,
            entry.description,
            entry.parameters,
            entry.command,
            render=render,
            folder=Path(loaded.folder_of(f"{path}.command")),
            workspace=self.workspace,
            environment=lambda: self.child_environment(loaded.folder),
            **_options(entry),
        )


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


def model_id(path: str, choice: ModelChoice, names: Names) -> str:
    """The id of the model that a spec chose."""
    return Template(choice.id or choice.provider, f"{path}.id").render(names)


Names = Mapping[str, Any]
"""What templates see."""
ToolEntry = str | UseTool | PythonTool | CommandTool


def _narrowed(function: Callable[..., Any], patterns: Sequence[str]) -> Callable[..., Any]:
    """A tool that runs commands, for only those that fit patterns."""

    @functools.wraps(function)
    def narrowed(**arguments: Any) -> Any:
        from runner.engine.contract import ToolResult
        from runner.hooks.permission import refused_command

        refused = refused_command(arguments["command"], patterns)
        if refused is not None:
            return ToolResult(f"Not run: {refused}", is_error=True)
        return function(**arguments)

    return narrowed


def _options(entry: UseTool | PythonTool | CommandTool | None) -> dict[str, Any]:
    """What an entry says that any tool may say of itself."""
    if entry is None:
        return {}
    given = {
        "execution": entry.execution,
        "idempotent": entry.idempotent,
        "timeout": entry.timeout,
    }
    return {key: value for key, value in given.items() if value is not None}


def _settings(loaded: Loaded, path: str, choice: ModelChoice, names: Names) -> Any:
    from runner.providers.settings import ModelSettings

    def render(template: str, values: Mapping[str, Any]) -> str:
        return Template(template, f"{path}.script").render({**names, **values})

    def text(key: str, value: str | None) -> str | None:
        return None if value is None else Template(value, f"{path}.{key}").render(names)

    script = [] if choice.script is None else [_given(to_json(reply)) for reply in choice.script]
    return ModelSettings(
        provider=choice.provider,
        id=model_id(path, choice, names),
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
