"""All English and JSON that a user reads; a module for each output."""
