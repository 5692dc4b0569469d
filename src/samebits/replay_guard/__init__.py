"""Steps of a training executed again while it runs, to find hardware that computes wrong bits."""
