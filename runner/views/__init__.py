"""Events in, text out."""
