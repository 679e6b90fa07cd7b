"""Many workers, one result: who they are, how they find each other, what they exchange."""
