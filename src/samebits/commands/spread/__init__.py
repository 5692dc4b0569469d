"""The effect of randomness on a script: several seeds, their curves, and what the last values say."""
