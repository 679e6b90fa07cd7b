"""Exports: a run as a model of another program, whose translations are compared with our own."""
