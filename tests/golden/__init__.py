"""What must stay, frozen: runs, figures and artefacts; ``python -m tests.golden.freeze`` writes them."""
