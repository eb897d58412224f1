"""What makes a tool of a function, a command or another spec."""
