"""The loop and its events; it knows no YAML, HTTP, files or processes."""
