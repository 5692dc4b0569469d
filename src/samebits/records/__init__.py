"""Records of runs: events, the file format (docs/reference/record-format.md), reading, writing. No torch."""
