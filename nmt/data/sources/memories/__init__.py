"""Translation memories and catalogues: TMX, XLIFF and gettext, one file or all in an archive."""
