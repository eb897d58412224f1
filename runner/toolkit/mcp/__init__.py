"""MCP servers whose tools a model can call, by the official SDK (the extra ``pi-run[mcp]``).

The SDK takes long to import, so it is imported only where a server is started. All that a server
says is data: it is bounded, and what is wrong with it ends the server and not the run.
"""
