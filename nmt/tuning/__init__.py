"""Tuning: search for a better configuration than the one given, by successive halving within a budget of time."""
