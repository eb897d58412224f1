"""Text → a checked spec.

What others call::

    loaded = load("triage.yaml", sets=["limits.turns=3", ("model.id", "gpt-5")])  # .load
    loaded.spec                      # what it says: a `model.Spec`, texts of files included
    loaded.name, loaded.file, loaded.folder, loaded.sha256, loaded.warnings
    loaded.agents["tools[1].agent"]  # a spec that it uses, `Loaded` too; everything() has all
    loaded.missing_environment(os.environ)         # faults, one a name that is used and not set
    loaded.environment_values(os.environ)          # what templates see as `env`
    loaded.bind_inputs(values, texts)              # what templates see as `inputs`
    loaded.fault("tools[2].python", "…")           # a `Fault` at a PATH's place, for later stages
    loaded.where("follow_ups.tasks[0].prompt")     # FILE:LINE:COLUMN: PATH, for `Template`
    loaded.resolve("tools[2].python", "./a.py")    # a full path, by the file that names it

    Template(text, where).render(names)            # runner.spec.template; raises TemplateError
    Template(text, where).value(names)             # "{{ x }}" alone keeps the type of x
    Expression(text, where).holds(names)           # when, until, that; .value for for_each

    to_json(loaded.spec)                           # runner.spec.decode: JSON, defaults included
    load_plan(json, agents)                        # runner.spec.load: and back, with no file
    read_data("inputs.yaml")                       # runner.spec.load: any YAML or JSON file
    parameters(loaded.inputs)                      # runner.spec.inputs: inputs as a tool's schema

All faults of all files come at once, as one ``SpecError``. What is left for later stages: that
Python can be imported, that tools have legal and different names, that a provider is known.

How it goes: bytes → `yaml` → a tree of `node` with places → `load` lays it over what it extends and
applies changes → `decode` makes a `model` of it by the `shape` of each type hint, and notes what is
marked (`mark`) → `marked` holds each such value to what it says it is, `check` holds them against
the rest: templates against the names in their `scope`, tasks against their agents.

A key is added by a line in the model, with its type, its marks and the string below it; decoding,
the checks of its marks, the JSON Schema (``python -m runner.spec.schema``) and the way back to JSON
follow from that.
"""
