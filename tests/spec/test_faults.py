"""Each thing that can be wrong with a spec, with the line that tells it."""

from collections.abc import Callable

import pytest

Faults = Callable[..., list[str]]

HEAD = "model: {script: []}\nprompt: Hello\n"
"""What a spec needs at least; what follows it begins in line 3."""

TEXT = {
    "empty": ("", "s.yaml:1:1: spec: it is empty; a map of keys is needed"),
    "only a comment": ("# x\n", "s.yaml:1:1: spec: it is empty; a map of keys is needed"),
    "no map": ("- a\n", "s.yaml:1:1: spec: a map is needed, not a list"),
    "not UTF-8": (
        b"version: 1\nname: \xff\n",
        "s.yaml:2:7: spec: it is not UTF-8; save the file in that encoding",
    ),
    "UTF-16": (
        "version: 1".encode("utf-16"),
        "s.yaml:1:1: spec: it is not UTF-8; save the file in that encoding",
    ),
    "too large": (
        HEAD + "#" * (1 << 20),
        "s.yaml:1:1: spec: it is larger than 1 MiB; keep data in other files",
    ),
    "control character": (
        HEAD + "name: a\x07\n",
        's.yaml:3:8: spec: the character \\x07 is not allowed; write "\\x07", in double quotes',
    ),
    "tab": ("model:\n\tscript: []\n", "s.yaml:2:1: model: a tab can't indent; use spaces"),
    "open bracket": (
        "model: {script: [}\n",
        "s.yaml:1:18: model.script[0]: this is not well-formed YAML: did not find expected node "
        "content while parsing a flow node that began in line 1",
    ),
    "colon in a text": (
        "prompt: a: b\n",
        "s.yaml:1:10: spec: this is not well-formed YAML: mapping values are not allowed in this "
        'context; put a text that has ": " in it in quotes',
    ),
    "reserved character": (
        "prompt: @you\n",
        's.yaml:1:9: prompt: a plain value can\'t begin with "@"; put it in quotes',
    ),
    "second document": (
        HEAD + "---\na: 1\n",
        "s.yaml:3:1: spec: a second document begins; a file is one spec",
    ),
    "duplicate key": (
        HEAD + "prompt: Again\n",
        "s.yaml:3:1: prompt: duplicate key; it stands in line 2 too",
    ),
    "duplicate key below": (
        HEAD + 'limits:\n  turns: 1\n  "turns": 2\n',
        "s.yaml:5:3: limits.turns: duplicate key; it stands in line 4 too",
    ),
    "custom tag": (
        HEAD + "name: !thing x\n",
        "s.yaml:3:7: name: the tag !thing is not allowed; a spec has plain values only",
    ),
    "Python tag": (
        HEAD + "limits: !!python/object:os.system {turns: 1}\n",
        "s.yaml:3:9: limits: the tag !!python/object:os.system is not allowed; a spec has plain "
        "values only",
    ),
    "unknown alias": (
        HEAD + "name: *who\n",
        's.yaml:3:7: name: the alias "*who" names no anchor that stands before it; put the text in '
        "quotes if it is none",
    ),
    "alias within its anchor": (
        HEAD + "x-a: &a [*a]\n",
        's.yaml:3:10: x-a[0]: the alias "*a" stands inside of its own anchor; it would never end',
    ),
    "merge of a text": (
        HEAD + "limits: {<<: all}\n",
        's.yaml:3:10: limits["<<"]: "<<" merges a map or a list of maps, such as <<: *name',
    ),
    "merge twice": (
        HEAD + "limits:\n  <<: {turns: 1}\n  <<: {depth: 1}\n",
        's.yaml:5:3: limits["<<"]: duplicate key; it stands in line 4 too',
    ),
    "key that is a list": (HEAD + "? [a]\n: 1\n", "s.yaml:3:3: spec: a key has to be a text"),
    "key that is nothing": (
        HEAD + "limits:\n  ?\n  : 1\n",
        "s.yaml:4:4: limits: a key is missing before the colon",
    ),
    "number of 5,000 digits": (
        HEAD + "x-n: " + "9" * 5000,
        "s.yaml:3:6: x-n: the number has too many digits",
    ),
    "unquoted template": (
        "model: {script: []}\nprompt: {{ inputs.a }}\n",
        's.yaml:2:9: prompt: a value that begins with {{ must be quoted: "{{ … }}"',
    ),
    "unquoted template with more after it": (
        "model: {script: []}\nprompt: {{ inputs.a }}: and more\n",
        's.yaml:2:9: prompt: a value that begins with {{ must be quoted: "{{ … }}"',
    ),
    "unquoted template in a list": (
        HEAD + "tools: [{name: a, description: b, command: [echo, {{ args.x }}]}]\n",
        's.yaml:3:51: tools[0].command[1]: a value that begins with {{ must be quoted: "{{ … }}"',
    ),
    "unquoted statement": (
        "model: {script: []}\nprompt: {% if a %}\n",
        's.yaml:2:9: prompt: a value that begins with {% must be quoted: "{% … %}"',
    ),
    "unquoted comment": (
        "model: {script: []}\nprompt: {# a #}\n",
        's.yaml:2:9: prompt: a value that begins with {# must be quoted: "{# … #}"',
    ),
}

KEYS = {
    "unknown key": ("promt: x", 's.yaml:3:1: promt: unknown key; did you mean "prompt"?'),
    "unknown key like none": (
        "limits: {zzz: 1}",
        "s.yaml:3:10: limits.zzz: unknown key; known: turns, tool_calls, repeats, depth, seconds, "
        "tokens, cost_usd",
    ),
    "$schema below the top": (
        "limits: {$schema: x}",
        "s.yaml:3:10: limits.$schema: unknown key; known: turns, tool_calls, repeats, depth, "
        "seconds, tokens, cost_usd",
    ),
    "key with odd letters": (
        'limits: {"a b\\n": 1}',
        's.yaml:3:10: limits["a b\\n"]: unknown key; known: turns, tool_calls, repeats, depth, '
        "seconds, tokens, cost_usd",
    ),
    "missing key": (
        "steering: {messages: [{after_turn: 1}]}",
        "s.yaml:3:23: steering.messages[0].text: it is missing, and has no default",
    ),
    "misspelt key of a tool": (
        "tools:\n  - {name: a, description: b, comand: [c]}",
        's.yaml:4:31: tools[0].comand: unknown key; did you mean "command"?',
    ),
    "tool of no kind": (
        "tools: [{name: a, description: b}]",
        "s.yaml:3:9: tools[0]: one of use, python, command, http, mcp or agent is needed",
    ),
    "tool of two kinds": (
        'tools: [{use: shell, python: "json:dumps"}]',
        's.yaml:3:22: tools[0].python: it can\'t stand beside "use"; one of use, python, command, '
        "http, mcp or agent is needed",
    ),
    "hook of two kinds": (
        'hooks: {convert_to_llm: [{python: "json:dumps", command: [a]}]}',
        's.yaml:3:49: hooks.convert_to_llm[0].command: it can\'t stand beside "python"; one of '
        "python or command is needed",
    ),
    "hook of no kind": (
        "hooks: {stop_after_turn: [{}]}",
        "s.yaml:3:27: hooks.stop_after_turn[0]: one of python, command or when is needed",
    ),
    "hook at the wrong point": (
        "hooks: {after_tool_call: [{trim: {max_tokens: 1}}]}",
        "s.yaml:3:28: hooks.after_tool_call[0].trim: unknown key; known: python, command, timeout, "
        "env, on_error, redact, truncate",
    ),
    "expectation of no kind": (
        "expect: [{contans: x}]",
        's.yaml:3:11: expect[0].contans: unknown key; did you mean "contains"?',
    ),
    "message of two forms": (
        "messages: [{role: user, text: a, content: []}]",
        's.yaml:3:34: messages[0].content: it can\'t stand beside "text"; one of text or content '
        "is needed",
    ),
    "result without its call": (
        "messages: [{role: tool_result, text: a}]",
        's.yaml:3:12: messages[0].tool_call_id: it is missing where role is "tool_result"',
    ),
    "task that does nothing": (
        "follow_ups: {tasks: [{id: a}]}",
        "s.yaml:3:22: follow_ups.tasks[0]: prompt or agent is needed",
    ),
}

VALUES = {
    "text for an integer": (
        "max_parallel_tools: three",
        "s.yaml:3:21: max_parallel_tools: an integer of at least 1 is needed, not the string "
        '"three"',
    ),
    "quoted number": (
        'max_parallel_tools: "3"',
        's.yaml:3:21: max_parallel_tools: an integer of at least 1 is needed, not the string "3"',
    ),
    "too small": (
        "limits: {seconds: 0}",
        "s.yaml:3:19: limits.seconds: a number greater than 0 is needed, not the number 0",
    ),
    "fraction": (
        "limits: {turns: 1.5}",
        "s.yaml:3:17: limits.turns: an integer of at least 1 is needed, not the number 1.5",
    ),
    "endless": (
        "limits: {seconds: .inf}",
        "s.yaml:3:19: limits.seconds: the number .inf is too large",
    ),
    "not a number": (
        "limits: {seconds: .nan}",
        "s.yaml:3:19: limits.seconds: a number greater than 0 is needed, not the number .nan",
    ),
    "huge": (
        "limits: {turns: 99999999999999999999}",
        "s.yaml:3:17: limits.turns: the number 99999999999999999999 is too large",
    ),
    "word for a boolean": (
        "log: {deltas: yes}",
        's.yaml:3:15: log.deltas: a boolean (true or false) is needed, not the string "yes"',
    ),
    "text for a list": (
        "tools: read_file",
        's.yaml:3:8: tools: a list is needed, not the string "read_file"',
    ),
    "list for a map": ("limits: []", "s.yaml:3:9: limits: a map is needed, not a list"),
    "nothing for a map": ("limits:", "s.yaml:3:8: limits: a map is needed, not null"),
    "map for a text": (
        "name: {a: b}",
        "s.yaml:3:7: name: a string is needed, not a map",
    ),
    "number in a list of tools": (
        "tools: [[]]",
        "s.yaml:3:9: tools[0]: a string or a map is needed, not a list",
    ),
    "wrong word": (
        "tool_execution: serial",
        's.yaml:3:17: tool_execution: parallel or sequential is needed, not the string "serial"; '
        'did you mean "sequential"?',
    ),
    "newer version": ("version: 2", "s.yaml:3:10: version: 1 is needed, not the number 2"),
    "name": (
        "name: My Spec",
        's.yaml:3:7: name: the string "My Spec" is not right; use a-z, 0-9, _ and -',
    ),
    "input's name": (
        'inputs: {"a b": {}}',
        's.yaml:3:10: inputs["a b"]: the name is not right; use letters, digits, _ and -, not a '
        "digit first",
    ),
    "NaN in plain data": (
        "x-ok: .nan\nhooks: {before_tool_call: [{set: {tool: a, args: {x: .nan}}}]}",
        "s.yaml:4:54: hooks.before_tool_call[0].set.args.x: .nan is no number that JSON has",
    ),
    "default": (
        "inputs: {a: {type: integer, default: two}}",
        's.yaml:3:38: inputs.a.default: an integer is needed, not "two"',
    ),
    "default that is null": (
        "inputs: {a: {default: null}}",
        "s.yaml:3:23: inputs.a.default: a string is needed, not null",
    ),
    "default that is not allowed": (
        "inputs: {a: {type: integer, enum: [1, 2], default: 3}}",
        "s.yaml:3:52: inputs.a.default: one of 1, 2 is needed, not 3",
    ),
    "option of the wrong type": (
        "inputs: {a: {type: integer, enum: [1, two]}}",
        's.yaml:3:39: inputs.a.enum[1]: an integer is needed, not "two"',
    ),
    "regular expression": (
        "log: {redact: ['(']}",
        "s.yaml:3:16: log.redact[0]: it is no regular expression: missing ), unterminated "
        "subpattern at position 0",
    ),
    "schema of a tool": (
        "tools: [{name: a, description: b, command: [c], parameters: {type: object, required: x}}]",
        "s.yaml:3:86: tools[0].parameters.required: this is no valid JSON Schema: 'x' is not of "
        "type 'array'",
    ),
    "schema of an unknown type": (
        "output: {schema: {properties: {a: {type: strin}}}}",
        "s.yaml:3:42: output.schema.properties.a.type: this is no valid JSON Schema: 'strin' is "
        "not one of ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']",
    ),
    "reference of a schema that leads nowhere": (
        "output: {schema: {properties: {a: {items: {$ref: '#/$defs/b'}}}, $defs: {c: {}}}}",
        "s.yaml:3:50: output.schema.properties.a.items.$ref: this is no valid JSON Schema: "
        '"#/$defs/b" is nowhere in it',
    ),
    "reference of a schema to what would have to be fetched": (
        "output: {schema: {$ref: 'http://127.0.0.1:9/x.json'}}",
        "s.yaml:3:25: output.schema.$ref: this is no valid JSON Schema: "
        '"http://127.0.0.1:9/x.json" is nowhere in it',
    ),
    "permission": (
        "permissions: {allow: ['git *']}",
        "s.yaml:3:23: permissions.allow[0]: a rule is a tool's name, or NAME(PATTERN), such as "
        '"shell(git *)"',
    ),
    "empty argv": (
        "hooks: {steering_messages: [{command: []}]}",
        "s.yaml:3:39: hooks.steering_messages[0].command: it is empty; name a program",
    ),
    "id of the first task": (
        "follow_ups: {tasks: [{id: main, prompt: a}]}",
        's.yaml:3:27: follow_ups.tasks[0].id: "main" is the first prompt\'s own id; use another',
    ),
    "id that is taken": (
        "follow_ups:\n  tasks:\n  - {id: a, prompt: a}\n  - {id: a, prompt: b}",
        's.yaml:6:10: follow_ups.tasks[1].id: "a" is the id of the task in line 5 too',
    ),
    "inputs without an agent": (
        "follow_ups: {tasks: [{id: a, prompt: b, inputs: {c: d}}]}",
        "s.yaml:3:41: follow_ups.tasks[0].inputs: only a task with an agent has inputs; a prompt "
        "uses names in its template",
    ),
}

NAMES = {
    "syntax": (
        'system_prompt: "{{ a"',
        "s.yaml:3:16: system_prompt: the template can't be read: unexpected end of template, "
        "expected 'end of print statement'.",
    ),
    "line of a long text": (
        "system_prompt: |\n  a\n  {{ b }}",
        's.yaml:3:16: system_prompt: "b" is not defined here; known: inputs, env, run, spec (line '
        "2 of the text)",
    ),
    "input": (
        'inputs: {issue: {}}\nsystem_prompt: "{{ inputs.isue }}"',
        's.yaml:4:16: system_prompt: no input is called "isue"; did you mean "issue"?',
    ),
    "input in brackets": (
        "inputs: {issue: {}}\nsystem_prompt: \"{{ inputs['isue'] }}\"",
        's.yaml:4:16: system_prompt: no input is called "isue"; did you mean "issue"?',
    ),
    "environment": (
        'env: [HOMES]\nsystem_prompt: "{{ env.HOME }}"',
        's.yaml:4:16: system_prompt: the environment name "HOME" is not listed under env; did you '
        'mean "HOMES"?',
    ),
    "run": (
        "log: {path: '{{ run.nam }}'}",
        's.yaml:3:13: log.path: run has no "nam"; did you mean "name"?',
    ),
    "tasks before the tasks": (
        'system_prompt: "{{ tasks.main.text }}"',
        's.yaml:3:16: system_prompt: "tasks" is not defined here; known: inputs, env, run, spec',
    ),
    "later task": (
        'follow_ups: {tasks: [{id: a, prompt: "{{ tasks.b.text }}"}, {id: b, prompt: x}]}',
        's.yaml:3:38: follow_ups.tasks[0].prompt: the task "b" is not done here; a task sees those '
        "before it",
    ),
    "task itself": (
        'follow_ups: {tasks: [{id: a, prompt: "{{ tasks.a.text }}"}]}',
        's.yaml:3:38: follow_ups.tasks[0].prompt: the task "a" is not done here; a task sees those '
        "before it",
    ),
    "unknown task": (
        'follow_ups: {tasks: [{id: a, prompt: "{{ tasks.mian.text }}"}]}',
        's.yaml:3:38: follow_ups.tasks[0].prompt: no task is called "mian"; did you mean "main"?',
    ),
    "what a task has": (
        'follow_ups: {tasks: [{id: a, prompt: "{{ tasks.main.txt }}"}]}',
        's.yaml:3:38: follow_ups.tasks[0].prompt: tasks.main has no "txt"; did you mean "text"?',
    ),
    "item without for_each": (
        'follow_ups: {tasks: [{id: a, prompt: "{{ item }}"}]}',
        's.yaml:3:38: follow_ups.tasks[0].prompt: "item" is not defined here; known: inputs, env, '
        "run, spec, tasks",
    ),
    "task outside of until": (
        'follow_ups: {tasks: [{id: a, prompt: x, when: "task.text"}]}',
        's.yaml:3:47: follow_ups.tasks[0].when: "task" is not defined here; did you mean "tasks"?',
    ),
    "when": (
        'follow_ups: {tasks: [{id: a, prompt: x, when: "a in in b"}]}',
        's.yaml:3:47: follow_ups.tasks[0].when: the expression can\'t be read: "b" is not expected '
        "here",
    ),
    "when with braces": (
        'follow_ups: {tasks: [{id: a, prompt: x, when: "{{ true }}"}]}',
        "s.yaml:3:47: follow_ups.tasks[0].when: the expression can't be read: expected token ':', "
        "got '}'; it stands without braces",
    ),
    "that": (
        'expect: [{that: "result.turn < 3"}]',
        's.yaml:3:17: expect[0].that: result has no "turn"; did you mean "turns"?',
    ),
    "arguments that are known": (
        "tools: [{name: a, description: b, command: ['{{ args.pth }}'], parameters: {type: object, "
        "properties: {path: {}}, additionalProperties: false}}]",
        's.yaml:3:45: tools[0].command[0]: no argument is called "pth"; did you mean "path"?',
    ),
    "arguments outside of tools": (
        'system_prompt: "{{ args.path }}"',
        's.yaml:3:16: system_prompt: "args" is not defined here; known: inputs, env, run, spec',
    ),
    "filter": (
        "system_prompt: \"{{ 'a' | uper }}\"",
        's.yaml:3:16: system_prompt: no filter is called "uper"; did you mean "upper"?',
    ),
    "test": (
        'system_prompt: "{{ 1 is evn }}"',
        's.yaml:3:16: system_prompt: no test is called "evn"; did you mean "even"?',
    ),
    "long number": (
        'system_prompt: "{{ ' + "9" * 5000 + ' }}"',
        "s.yaml:3:16: system_prompt: a number in the template has too many digits",
    ),
    "chance": (
        'system_prompt: "{{ [1, 2] | random }}"',
        's.yaml:3:16: system_prompt: no filter is called "random"',
    ),
    "other files": (
        "system_prompt: \"{% include '/etc/passwd' %}\"",
        's.yaml:3:16: system_prompt: "include" is not available: a template is all in one text',
    ),
    "a way out": (
        'system_prompt: "{{ run.__class__ }}"',
        's.yaml:3:16: system_prompt: "__class__": names that begin with _ are closed to templates',
    ),
    "a way out by brackets": (
        "system_prompt: \"{{ ''['__class__'] }}\"",
        's.yaml:3:16: system_prompt: "__class__": names that begin with _ are closed to templates',
    ),
    "a way out by a filter": (
        "system_prompt: \"{{ '' | attr('__class__') }}\"",
        's.yaml:3:16: system_prompt: "__class__": names that begin with _ are closed to templates',
    ),
}

FILES = {
    "prompt": (
        "system_prompt: {file: prompts/x.md}",
        "s.yaml:3:23: system_prompt.file: there is no file HERE/prompts/x.md",
    ),
    "folder": (
        "system_prompt: {file: .}",
        "s.yaml:3:23: system_prompt.file: HERE is a folder; name a file",
    ),
    "device": (
        "system_prompt: {file: /dev/zero}",
        "s.yaml:3:23: system_prompt.file: /dev/zero is not a regular file",
    ),
    "misspelt file": (
        "system_prompt: {fil: x}",
        's.yaml:3:17: system_prompt.fil: unknown key; did you mean "file"?',
    ),
    "Python": (
        "tools: [{python: './x.py:f'}]",
        "s.yaml:3:18: tools[0].python: there is no file HERE/x.py",
    ),
    "Python without a function": (
        "tools: [{python: ./x.py}]",
        "s.yaml:3:18: tools[0].python: the function is missing; write ./x.py:NAME",
    ),
    "Python that is none": (
        "tools: [{python: json}]",
        's.yaml:3:18: tools[0].python: "json" is no function; write FILE.py:NAME, or '
        "package.module:NAME",
    ),
    "program": (
        "hooks: {steering_messages: [{command: [./inbox.sh]}]}",
        "s.yaml:3:40: hooks.steering_messages[0].command[0]: there is no file HERE/inbox.sh",
    ),
    "agent": (
        "tools: [{agent: ./other.yaml}]",
        "s.yaml:3:17: tools[0].agent: there is no file HERE/other.yaml",
    ),
    "base": ("extends: base.yaml", "s.yaml:3:10: extends: there is no file HERE/base.yaml"),
    "one of two bases": (
        "extends: [s2.yaml, base.yaml]",
        "s.yaml:3:20: extends[1]: there is no file HERE/base.yaml",
    ),
    "itself as base": (
        "extends: ./s.yaml",
        "s.yaml:3:10: extends: the files extend each other in a cycle: s.yaml → s.yaml",
    ),
    "itself as agent": (
        "tools: [{agent: ./s.yaml}]",
        "s.yaml:3:17: tools[0].agent: the specs use each other in a cycle: s.yaml → s.yaml",
    ),
    "key": (
        "x-a: 1\nmodel: {api_key: {file: key.txt}}",
        "s.yaml:4:1: model: duplicate key; it stands in line 1 too",
    ),
}


@pytest.mark.parametrize("name", TEXT)
def test_text(faults: Faults, name: str) -> None:
    text, expected = TEXT[name]
    assert faults(text)[0] == expected


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        pytest.param(*case, id=name)
        for table in (KEYS, VALUES, NAMES, FILES)
        for name, case in table.items()
    ],
)
def test_one_fault(faults: Faults, extra: str, expected: str) -> None:
    assert faults(HEAD + extra + "\n", {"s2.yaml": HEAD}) == [expected]


MODELS = {
    "none": ("prompt: a", "s.yaml:1:1: model: it is missing, and has no default"),
    "nothing to say": (
        "model: {}",
        "s.yaml:1:8: model.script: it is missing; the scripted model answers from it, one entry a "
        "model call",
    ),
    "no id": (
        "model: {provider: openai}",
        "s.yaml:1:8: model.id: it is missing; openai has many models",
    ),
    "key in the open": (
        "model: {provider: openai, id: x, api_key: sk-secret}",
        "s.yaml:1:43: model.api_key: a map is needed",
    ),
    "key from nowhere": (
        "model: {provider: openai, id: x, api_key: {}}",
        "s.yaml:1:43: model.api_key: one of env, file, command or python is needed",
    ),
    "key from two places": (
        "model: {provider: openai, id: x, api_key: {env: A, command: [b]}}",
        's.yaml:1:52: model.api_key.command: it can\'t stand beside "env"; one of env, file, '
        "command or python is needed",
    ),
    "key's file": (
        "model: {provider: openai, id: x, api_key: {file: k}}",
        "s.yaml:1:50: model.api_key.file: there is no file HERE/k",
    ),
    "script": (
        "model: {script: [{text: a, repeat: forevr}]}",
        's.yaml:1:36: model.script[0].repeat: forever is needed, not the string "forevr"; did you '
        'mean "forever"?',
    ),
    "stand-in": (
        "model: {script: [], fallback: [{provider: openai, id: a, fallback: []}]}",
        "s.yaml:1:58: model.fallback[0].fallback: unknown key; known: provider, id, path, "
        "base_url, api_key, temperature, max_output_tokens, reasoning, timeout, retry, rate, "
        "price, cache, options, script",
    ),
    "rate of nothing": (
        "model: {script: [], rate: {per: 1}}",
        "s.yaml:1:27: model.rate: requests or tokens is needed",
    ),
    "rate of none": (
        "model: {script: [], rate: {requests: 0}}",
        "s.yaml:1:38: model.rate.requests: a number greater than 0 is needed, not the number 0",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(faults: Faults, name: str) -> None:
    text, expected = MODELS[name]
    assert faults(text + "\n") == [expected]


def test_all_faults_of_all_files_come_at_once_in_their_order(faults: Faults) -> None:
    found = faults(
        HEAD + "extends: base.yaml\nname: !x a\nname: b\nlimits: {turns: many, turn: 3}\n"
        'system_prompt: {file: p.md}\ntools: [{agent: agent.yaml}]\nlog: {path: "{{ x }}"}\n',
        {
            "base.yaml": "limits: {depth: deep}\n",
            "p.md": "a\n{{ inputs.b }}\n",
            "agent.yaml": HEAD + "promt: a\n",
        },
    )

    assert [fault.split("; ")[0].split(" is needed")[0] for fault in found] == [
        "agent.yaml:3:1: promt: unknown key",
        "base.yaml:1:17: limits.depth: an integer of at least 0",
        'p.md:2:1: system_prompt: no input is called "b"',
        "s.yaml:4:7: name: the tag !x is not allowed",
        "s.yaml:5:1: name: duplicate key",
        "s.yaml:6:17: limits.turns: an integer of at least 1",
        "s.yaml:6:23: limits.turn: unknown key",
        's.yaml:9:13: log.path: "x" is not defined here',
    ]


def test_columns_count_characters(faults: Faults) -> None:
    text = '\ufeffmodel: {script: []}\r\nprompt: "😀ü", limits'.replace(", limits", "") + (
        '\r\nlimits: {"turns": 1, "dépth": 2}\r\n'
    )
    assert faults(text)[0].startswith("s.yaml:3:22: limits.dépth: unknown key; did you mean")


def test_line_breaks_of_older_yaml_are_none(faults: Faults) -> None:
    text = HEAD + 'name: "a\u2028b\x85c"\nlimit: {}\n'
    assert [fault.split(": ")[0] for fault in faults(text)] == ["s.yaml:3:7", "s.yaml:4:1"]


def test_an_alias_bomb_is_found_before_it_goes_off(faults: Faults) -> None:
    bomb = "x-0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )

    (fault,) = faults(HEAD + bomb)

    assert fault.startswith("s.yaml:7:11: ")
    assert fault.endswith("with its aliases the spec has more than 10,000 values")


def test_as_many_values_as_allowed(faults: Faults) -> None:
    def spec(count: int) -> str:
        return HEAD + f"x-a: &a [{', '.join('x' * count)}]\nx-b: [*a, *a, *a]\n"

    assert faults(spec(2490)) == []
    assert len(faults(spec(2500))) == 1


def test_many_values_without_aliases_are_no_bomb(faults: Faults) -> None:
    assert faults(HEAD + f"x-a: [{', '.join('x' * 20_000)}]\n") == []


@pytest.mark.parametrize(
    "deep",
    [
        "x-a: " + "[" * 200_000,
        "x-a: " + "{a: " * 50_000,
        "x-a: " + "[" * 100 + "]" * 100,
        "".join(f"{'  ' * n}a:\n" for n in range(300)),
        "- " * 3000,
        'system_prompt: "{{ ' + "(" * 5000 + '"',
        'system_prompt: "{{ ' + "+".join("1" * 5000) + ' }}"',
        'system_prompt: "{{ ' + "-" * 5000 + '1 }}"',
        'system_prompt: "' + "{% if 1 %}" * 3000 + '"',
        "log: {redact: ['" + "(" * 5000 + ")" * 5000 + "']}",
        "output: {schema: " + "{not: " * 90 + "{type: x}" + "}" * 90 + "}",
    ],
)
def test_deep_nesting_is_a_fault(faults: Faults, deep: str) -> None:
    (fault,) = faults(HEAD + deep)
    assert len(fault) < 600


def test_chains_of_files_have_an_end(faults: Faults) -> None:
    bases = {f"b{n}.yaml": f"extends: b{n + 1}.yaml\n" for n in range(30)}
    agents = {f"a{n}.yaml": HEAD + f"tools: [{{agent: a{n + 1}.yaml}}]\n" for n in range(30)}

    assert faults(HEAD + "extends: b0.yaml\n", bases) == [
        "b18.yaml:1:10: extends: more than 20 files extend one another in a row"
    ]
    assert faults(HEAD + "tools: [{agent: a0.yaml}]\n", agents) == [
        "a18.yaml:3:17: tools[0].agent: more than 20 specs use one another in a row"
    ]


def test_files_that_are_named_over_and_over_are_read_once(faults: Faults) -> None:
    bases = {f"b{n}.yaml": f"extends: [b{n + 1}.yaml, b{n + 1}.yaml]\n" for n in range(15)}

    assert faults(HEAD + "extends: b0.yaml\n", {**bases, "b15.yaml": "name: a\n"}) == []


def test_a_fault_in_what_is_shared_is_told_where_it_stands(faults: Faults) -> None:
    found = faults(
        HEAD + "x-t: &t {description: b, command: [a], timout: 3}\n"
        "tools:\n  - {<<: *t, name: a}\n  - <<: [*t]\n    name: b\n"
    )
    assert found == [
        's.yaml:3:40: tools[0].timout: unknown key; did you mean "timeout"?',
        's.yaml:3:40: tools[1].timout: unknown key; did you mean "timeout"?',
    ]
