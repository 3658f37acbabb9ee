"""The only room where measured meets predicted."""
