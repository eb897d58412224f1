"""One module a wire format, over one SSE reader and one HTTP client."""
