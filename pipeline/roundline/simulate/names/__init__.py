"""Kernel names as engines and libraries print them, spelled as torch traces spell them."""
