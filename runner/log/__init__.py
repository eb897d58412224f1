"""The event log: written, read, compared."""
