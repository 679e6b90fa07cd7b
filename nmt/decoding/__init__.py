"""Search over any model: greedy, sampling, beam; and the translator from text to text."""
