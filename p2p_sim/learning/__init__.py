"""Learning: data sets, clusters, models, and what a model loses when it is trained on private labels."""
