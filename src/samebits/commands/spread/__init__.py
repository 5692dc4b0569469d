"""The effect of randomness on a script: several seeds, their curves and final values."""
