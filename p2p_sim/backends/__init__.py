"""Where a run takes place: in this process, in Ray shards, or with one Ray actor a user."""
