"""Run directories: what a run leaves on disk, how it is written while the run goes on, and how it is read.

Start at ``run_directory``, which saves and loads; ``trace_writer`` and ``trace_reader`` are for messages.
"""
