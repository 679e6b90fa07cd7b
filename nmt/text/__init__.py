"""Translation of ordinary text: preprocessing before a search, and postprocessing of its translations."""
