"""Slices in the formats of other programs: networkx and GraphML, Perfetto and Chrome, ShiViz; one file a format."""
