"""Experiment trackers: training as they record it, through one listener."""
