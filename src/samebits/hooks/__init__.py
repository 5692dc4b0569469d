"""What control and recording share: replacing attributes, following imports, knowing whose frame it is."""
