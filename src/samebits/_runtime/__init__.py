"""Tools for work inside somebody else's program: patches, imports, frames, child processes."""
