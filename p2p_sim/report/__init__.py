"""What a person reads of a run: tables, summaries, reports and their figures, as JSON values and as text."""
