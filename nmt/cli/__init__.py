"""The command line: one module for each command, the options that they share, help pages and usage errors."""
