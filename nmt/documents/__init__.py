"""Files with text and markup: translated, their structure untouched."""
