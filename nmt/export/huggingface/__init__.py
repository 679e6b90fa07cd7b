"""Export to transformers: exporter, weights and tokenizer of Marian and Pegasus."""
