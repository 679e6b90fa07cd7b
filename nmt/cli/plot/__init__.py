"""``nmt plot``: a module for each group of figures."""
