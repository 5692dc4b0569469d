"""Records of runs: events, the file format (docs/record-format.md), reading and writing. No torch."""
