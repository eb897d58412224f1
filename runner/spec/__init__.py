"""From the text of a spec to a plan, with every fault and its place."""
