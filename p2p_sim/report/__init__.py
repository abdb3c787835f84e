"""What a person sees: tables and JSON, progress, and where a run's directory goes."""
