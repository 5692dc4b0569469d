"""Random number generators: sources of random numbers, seeds, states, and generators that objects hold."""
