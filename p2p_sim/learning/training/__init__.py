"""Training on what a learner received: models, losses that know the noise, labels without senders, bags."""
