"""How to record a capture, and annotations that name the phases of a round while recording."""
