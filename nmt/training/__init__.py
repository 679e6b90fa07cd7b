"""Training: state, input pipeline, loop, validation, checkpoints, resume."""
