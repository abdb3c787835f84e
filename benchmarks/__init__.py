"""Performance, as ratios within one run: machines differ and are shared, ratios survive that."""
