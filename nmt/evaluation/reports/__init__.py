"""An evaluation as text, Markdown and HTML."""
