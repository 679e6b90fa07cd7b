"""Commands that show runs, models and data."""
