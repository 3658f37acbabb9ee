"""Roundline accounts for every nanosecond of an LLM decode round."""

__version__ = "0.1.0"
