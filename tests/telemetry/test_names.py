"""The names are those of the conventions, as the installed package has them."""

import warnings

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, server_attributes

from runner.providers import anthropic, google, openai, openai_responses
from runner.telemetry import metrics, names

OURS = "pi_run."


def constants(*modules: object) -> set[str]:
    found = ((key, value) for module in modules for key, value in vars(module).items())
    return {value for key, value in found if isinstance(value, str) and not key.startswith("_")}


def test_every_attribute_is_one_of_the_conventions_or_marked_as_our_own() -> None:
    known = constants(gen_ai, error_attributes, server_attributes)
    used = {value for value in constants(names) if "." in value}
    used |= set(names.REQUEST_PARAMETERS.values())
    used.remove(names.EVALUATION)  # the name of an event

    assert {name for name in used if not name.startswith(OURS)} - known == set()


def test_operations_and_providers_have_their_well_known_values() -> None:
    operations = {one.value for one in gen_ai.GenAiOperationNameValues}
    providers = {one.value for one in gen_ai.GenAiProviderNameValues}

    assert {names.CHAT, names.INVOKE_AGENT, names.EXECUTE_TOOL} <= operations
    hosts = {end: names.provider_name("openai", f"x.{end}") for end in names._HOSTS}
    assert set(hosts.values()) <= providers
    for provider in ("anthropic", "google", "openai", "openai-responses"):
        assert names.provider_name(provider, None) in providers
    assert names.provider_name("scripted", None) == "scripted"


def test_metrics_have_the_names_and_bounds_of_the_conventions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = constants(gen_ai_metrics)

    assert {metrics.TOKEN_USAGE, metrics.OPERATION_DURATION} <= known
    assert metrics.TOKEN_BOUNDS[:4] == [1, 4, 16, 64]
    assert metrics.TOKEN_BOUNDS[-1] == 67108864
    assert metrics.DURATION_BOUNDS[:2] == [0.01, 0.02]
    assert metrics.DURATION_BOUNDS[-1] == 81.92
    assert metrics.AGENT_BOUNDS[-1] == 409.6


def test_the_public_servers_are_those_that_the_providers_ask() -> None:
    asked = {
        "anthropic": anthropic.PUBLIC,
        "google": google.PUBLIC,
        "openai": openai.PUBLIC,
        "openai-responses": openai_responses.PUBLIC,
    }

    for provider, url in asked.items():
        assert names.server(provider, None) == names.server(provider, url)


def test_a_server_is_its_name_and_port_alone() -> None:
    address = "http://me:secret@models.example:8080/v1?key=x"

    assert names.server("openai", address) == ("models.example", 8080)
    assert names.server("openai", "http://[::1]/v1") == ("::1", 80)
    assert names.server("openai", "http://[broken") is None
    assert names.server("openai", "{{ inputs.url }}") is None
    assert names.server("scripted", None) is None
    assert names.provider_name("openai", "evilapi.groq.com.example") == "openai"
