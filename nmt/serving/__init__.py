"""Translation service: an HTTP server with the LibreTranslate protocol, and its web page."""
