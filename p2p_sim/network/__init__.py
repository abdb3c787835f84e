"""Who may talk to whom, and what it costs: graphs as columns, walks on them, channels, cost model."""
