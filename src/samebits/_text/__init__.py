"""Text and files of others: opened, masked and shown safely."""
