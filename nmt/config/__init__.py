"""Configuration: typed sections with documented keys, and their YAML reader."""
