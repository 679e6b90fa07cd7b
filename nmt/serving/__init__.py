"""Translation service: the LibreTranslate protocol over HTTP."""
