"""Exports: a run as a model of another program, compared with our own translations before it is called done."""
