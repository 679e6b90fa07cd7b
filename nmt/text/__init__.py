"""Lines of text around a search: read, with tags and terms, and their translations written."""
