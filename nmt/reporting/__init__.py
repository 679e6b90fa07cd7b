"""Report of runs: one self-contained page of HTML."""
