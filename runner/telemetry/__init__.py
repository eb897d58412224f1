"""What happened in a run, told to others' tools: OpenTelemetry, and traces for Perfetto.

Events go in, as they happen or as a log has them; `runner.telemetry.trace` makes spans of them, by
OpenTelemetry's semantic conventions for generative AI; sinks (`spans`, `metrics`, `chrome`) pass
them on. Only `spans`, `metrics` and `otlp` need the extra ``otel``.
"""
