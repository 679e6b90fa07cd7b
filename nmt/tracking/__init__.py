"""Records of training for other programs."""
