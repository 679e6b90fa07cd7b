"""Files of localisation: catalogues of messages in the formats of programs and translators."""
