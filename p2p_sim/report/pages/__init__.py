"""Reports of runs: one document of JSON values, and its faces, HTML and Markdown."""
