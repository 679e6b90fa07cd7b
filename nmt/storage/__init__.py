"""Files on disk: atomic writes, locks, checksums, format numbers, names, text."""
