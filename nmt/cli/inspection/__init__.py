"""Commands that show runs, models and tokens."""
