"""Training on several hosts, with the result of one: who they are, and what they exchange."""
