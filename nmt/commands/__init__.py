"""The commands whose bodies are more than a few lines, one module each."""
