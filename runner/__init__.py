"""pi-run: agent workflows written as plain specs; one loop, one event log."""
