"""Documents of office programs: zip files with parts in XML."""
