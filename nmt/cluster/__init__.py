"""Many hosts, one result: who they are, and what they exchange."""
