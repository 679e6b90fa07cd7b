"""Reports of runs and evaluations: self-contained pages of HTML."""
