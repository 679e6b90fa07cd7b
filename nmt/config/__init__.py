"""The configuration: typed records with every key documented, read from YAML and checked."""
