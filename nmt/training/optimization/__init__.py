"""One optimizer step: loss, gradients, Adam, learning-rate schedules."""
