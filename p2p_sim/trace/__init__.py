"""Questions about the messages of a run: queries, cones, differences, statistics, replay, size estimates."""
