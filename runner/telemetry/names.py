"""Names of the semantic conventions for generative AI, and pi-run's own beside them.

Source: docs/gen-ai of github.com/open-telemetry/semantic-conventions-genai, as of 2026. They stand
here, and are not imported, so that a trace can be made without the extra; a test holds them against
the constants of ``opentelemetry.semconv``.
"""

from __future__ import annotations

from urllib.parse import urlsplit

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
AGENT_ID = "gen_ai.agent.id"
AGENT_DESCRIPTION = "gen_ai.agent.description"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_CREATION_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE = "gen_ai.token.type"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_DESCRIPTION = "gen_ai.tool.description"
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

# Content: only where it is asked for.
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

CHAT = "chat"
INVOKE_AGENT = "invoke_agent"
EXECUTE_TOOL = "execute_tool"

EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"

REQUEST_PARAMETERS = {
    "temperature": "gen_ai.request.temperature",
    "max_output_tokens": "gen_ai.request.max_tokens",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}
"""Numbers that shape a request, by what they are called in a spec."""

TURN = "pi_run.turn"
ATTEMPT = "pi_run.attempt"
TASK_ID = "pi_run.task.id"
TASK_ITERATION = "pi_run.task.iteration"
TASK_ITEM = "pi_run.task.item"
STATUS = "pi_run.status"
COST = "pi_run.cost_usd"
RETRY = "pi_run.model_retry"
RESUME = "pi_run.resume"
HOOK_DECISION = "pi_run.hook_decision"
LIMIT_REACHED = "pi_run.limit_reached"

UNFINISHED = "unfinished"
"""The error type of what had begun and has no end."""

FINISHES = {"tool_use": "tool_call"}
"""Why an answer ended, where the conventions have another word."""

_PROVIDERS = {"google": "gcp.gemini", "openai-responses": "openai"}
_HOSTS = {
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "openai.azure.com": "azure.ai.openai",
}
"""Who answers at a server whose wire format is another one's, by the end of its name."""

PUBLIC = {
    "anthropic": "api.anthropic.com",
    "google": "generativelanguage.googleapis.com",
    "openai": "api.openai.com",
    "openai-responses": "api.openai.com",
}
"""Where a provider is asked whose spec names no address."""


def server(provider: str, base_url: object) -> tuple[str, int] | None:
    """The name and port of the server that a model is asked at; None where there is none."""
    if not isinstance(base_url, str):
        return (PUBLIC[provider], 443) if provider in PUBLIC else None
    try:
        url = urlsplit(base_url.strip())
        port = url.port or (80 if url.scheme == "http" else 443)
    except ValueError:
        return None
    return (url.hostname, port) if url.hostname else None


def provider_name(provider: str, host: str | None) -> str:
    """What the conventions call a provider; its own name where they have none."""
    for end, name in _HOSTS.items() if host else ():
        if host == end or str(host).endswith((f".{end}", f"-{end}")):
            return name
    return _PROVIDERS.get(provider, provider)
