"""Exports of a run as a model of another program, with a comparison of their translations."""
