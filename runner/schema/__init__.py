"""Values held against JSON Schemas, within bounds, and told in sentences."""
