"""Teachers: models and servers whose translations a run learns from, for ``nmt.synthesis``."""
