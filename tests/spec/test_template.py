from typing import Any

import pytest

from runner.error import TemplateError
from runner.spec.template import Expression, Template, render_all

NAMES: dict[str, Any] = {
    "inputs": {"text": "{{ 7 * 7 }} ${x} {% raw %}", "n": 3, "list": [1, {"a": "b"}]},
    "args": {"items": "mine", "keys": [1], "class": "c", "_x": "own"},
    "tasks": {"main": {"text": "t", "output": None}},
}


def render(text: str) -> str:
    return Template(text, "s.yaml:1:1: prompt").render(NAMES)


LOOPS = "{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3
MACRO = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}"


def grown(more: str, end: str = "") -> str:
    """A template that makes more of what it has again and again."""
    loop = "{% for i in range(60) %}{% set ns.it = " + more + " %}{% endfor %}"
    return "{% set ns = namespace(it='x' * 9999) %}" + loop + "{{ ns.it" + end + " }}"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain $HOME ${HOME} {x} }} %} $(id)", "plain $HOME ${HOME} {x} }} %} $(id)"),
        ("{{ inputs.text }}", "{{ 7 * 7 }} ${x} {% raw %}"),
        ("{{ inputs.n + 1 }}\n", "4\n"),
        ("{{ inputs.list[1].a }}{{ inputs['n'] }}", "b3"),
        ("{# gone #}<b>{{ '<' }}", "<b><"),
        ("{% for k, v in args.items() %}{{ k }}{% endfor %}", None),
        ("{{ args.items }} {{ args.keys }} {{ args['class'] }} {{ args['_x'] }}", "mine [1] c own"),
        ("{% for k in inputs.keys() %}{{ k }},{% endfor %}", "text,n,list,"),
        ("{{ inputs | tojson | length > 5 }}", "True"),
        ("{{ inputs.none | default('d') }}{{ inputs.none is defined }}", "dFalse"),
        ("{% set a = 'x' * 3 %}{{ a | center(9) }}|", "   xxx   |"),
        ("{{ '%05.1f' | format(2) }} {{ '{:>4}'.format(1) }}", "002.0    1"),
        ("{{ [3, 1] | sort | first }}{{ range(3) | list }}", "1[0, 1, 2]"),
        ("{{ tasks.main.output is none }}", "True"),
    ],
)
def test_rendering(text: str, result: str | None) -> None:
    if result is None:
        with pytest.raises(TemplateError):  # the argument of that name is no method
            render(text)
    else:
        assert render(text) == result


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("{{ inputs.txet }}", 'there is no "txet" in it; did you mean "text"?'),
        ("{{ nothing }}", "'nothing' is undefined"),
        ("{{ tasks.main.output.files }}", "'None' has no attribute 'files'"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ inputs.n.__class__ }}", "access to attribute '__class__' of 'int' object is unsafe."),
        ("{{ inputs | attr('__init__') }}", 'there is no "__init__" in it'),
        ("{{ [inputs] | map(attribute='__class__') | first }}", "is unsafe"),
        ("{{ args.update({}) }}", "is unsafe"),
        ("{{ inputs.list.append(1) }}", "is unsafe"),
        ("{{ '{0.__class__}'.format(1) }}", "is unsafe"),
        ("{{ 'x' * 10000001 }}", "more than 1,000,000"),
        ("{{ [1] * 10000001 }}", "more than 1,000,000"),
        ("{{ 10 ** 10000000 }}", "more than 1,000,000"),
        ("{{ 2 ** 2000000 }}", "more than 1,000,000"),
        ("{{ range(10000000) }}", "more than 1,000,000"),
        ("{{ 'x' | center(10000000) }}", "more than 1,000,000"),
        ("{{ [1] | batch(10000000, 'x') | list }}", "more than 1,000,000"),
        ("{{ 1 | round(10000000) }}", "more than 1,000,000"),
        ("{{ 'x'.ljust(10000000) }}", "more than 1,000,000"),
        ("{{ '%9999999d' % 1 }}", "such a width"),
        ("{{ '%*d' | format(9999999, 1) }}", "such a width"),
        ("{{ '{:9999999}'.format(1) }}", "such a width"),
        (
            "{% set a = 'x' * 1000000 %}{% for i in range(100) %}{{ a }}{% endfor %}",
            "longer than 67,108,864",
        ),
        (LOOPS, "more than 3,000,000 steps"),
        ("{% for a in range(999) %}{{ range(999999) | sum }}{% endfor %}", "steps"),
        ("{{ range(999999) | map('string') | map('upper') | join }}", "steps"),
        (grown("ns.it ~ ns.it"), "steps"),
        (grown("ns.it + ns.it"), "steps"),
        (grown("[ns.it, ns.it]"), "steps"),
        (grown("[ns.it, ns.it]", " | string | length"), "steps"),
        (grown("[ns.it, ns.it]", " | tojson | length"), "steps"),
        (grown("{'a': ns.it, 'b': ns.it}", " ~ 'x'"), "steps"),
        (grown("7 ** 300000", " * ns.it * ns.it"), "more than 1,000,000"),
        ("{{ (['x' * 1000000] * 1000000) | join | length }}", "steps"),
        ("{{ ''.join(['x' * 1000000] * 1000000) | length }}", "steps"),
        ("{{ ('x' * 1000000) | replace('x', 'x' * 1000000) | length }}", "steps"),
        ("{{ ('x' * 1000000).replace('x', 'x' * 1000000) | length }}", "steps"),
        ("{{ ('{0}' * 300000).format('x' * 1000000) | length }}", "steps"),
        ("{{ ('%s' * 9999) | format(*(['x' * 1000000] * 9999)) | length }}", "steps"),
        ("{{ ('x\n' * 400000) | indent(1000000) | length }}", "steps"),
        ("{{ ('\t' * 1000000).expandtabs(1000000) | length }}", "steps"),
        ("{{ ('x' * 1000000).translate({120: 'y' * 1000000}) | length }}", "steps"),
        (MACRO, "steps"),
        ("{% set a = range(999999) | list %}{% for i in a %}{{ -1 in a }}{% endfor %}", "steps"),
        ("{% set a = 'x' * 999999 %}{% for i in a %}{% set b = a[1:] %}{% endfor %}", "steps"),
        (
            "{% set a %}{% for i in range(999999) %}{{ 'x' * 999 }}{% endfor %}{% endset %}",
            "steps",
        ),
        ("{% for a in b", "unexpected end of template"),
        ("{{ " + "(" * 9999 + " }}", "nested too deeply"),
    ],
)
def test_what_goes_wrong_is_told_with_its_place(text: str, cause: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(text)
    assert str(caught.value).startswith("s.yaml:1:1: prompt: ")
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ inputs.list }}", [1, {"a": "b"}]),
        (" {{- inputs.n -}} ", 3),
        ("{{ inputs.n }}{{ inputs.n }}", "33"),
        ("n: {{ inputs.n }}", "n: 3"),
        ("plain", "plain"),
        ("{{ '}}' }}{{ '{{' }}", "}}{{"),
        ("{{ inputs.text }}", "{{ 7 * 7 }} ${x} {% raw %}"),
    ],
)
def test_a_single_expression_keeps_its_type(text: str, value: Any) -> None:
    template = Template(text, "x")
    assert template.value(NAMES) == value
    assert template.value(NAMES) == value


def test_all_texts_of_a_value() -> None:
    value = {"a": ["{{ inputs.n }}", 5, None], "{{ b }}": "n{{ inputs.n }}"}
    assert render_all(value, NAMES, "x") == {"a": [3, 5, None], "{{ b }}": "n3"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("inputs.n > 2 and 't' in tasks.main.text", True),
        ("inputs.list | length", 2),
        ("inputs.list[1:]", [{"a": "b"}]),
        ("not inputs.none is defined", True),
        ("'{{' in inputs.text", True),
    ],
)
def test_expressions(text: str, value: Any) -> None:
    expression = Expression(text, "x")
    assert expression.value(NAMES) == value
    assert expression.holds(NAMES) is bool(value)


@pytest.mark.parametrize("text", ["nothing", "inputs.nothing", "inputs.n +", "a b", "", "1 / 0"])
def test_expressions_that_come_to_nothing(text: str) -> None:
    with pytest.raises(TemplateError, match=r"^here: "):
        Expression(text, "here").value(NAMES)


def test_values_of_a_run_are_not_changed_by_a_template() -> None:
    names = {"a": [1]}
    with pytest.raises(TemplateError):
        Template("{% do a.append(2) %}{{ a.append(2) }}", "x").render(names)
    assert names == {"a": [1]}


def test_what_is_counted_comes_out_as_it_is() -> None:
    text = (
        "{% for x in [3, 1] %}{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}"
        "{% for x in [[1, [2]], [3]] recursive %}{{ loop(x) if x is iterable else x }},{% endfor %}"
        "{% set up = ['a', 'b'] | map('upper') %}{{ up | first }}{{ up | list }}"
        "{{ {'b': 1, 'a': [none]} }} {{ 'abc'[1:] ~ 1 ~ true }} {{ 'b' in 'abc' }} {{ 2 in [1] }}"
    )
    wanted = "1/2False 2/2True 1,2,,,3,,A['B']{'b': 1, 'a': [None]} bc1True True False"
    assert Template(text, "x").render({}) == wanted
    # What a whole history takes is far from the bound.
    history = "{% for m in messages %}{{ m.text | trim }}: {{ m.text | length }}\n{% endfor %}"
    assert Template(history, "x").render({"messages": [{"text": "word " * 2000}] * 5000})
