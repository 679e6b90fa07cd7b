"""Import of models of other programs as runs."""
