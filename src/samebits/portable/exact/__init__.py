"""The ops of torch that give the same bits everywhere as they are."""
