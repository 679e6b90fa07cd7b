"""Translation of documents (HTML, subtitles, gettext, Word) that keeps their markup and structure."""
