"""Control of every RNG source and every switch that influences determinism."""
