"""Label inference: how well somebody guesses labels with what a view shows, and how well without it."""
