"""What torch's ops do in portable mode: one module for each family, each with a `table()`."""
