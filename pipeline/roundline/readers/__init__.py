"""Readers: each knows one file format and nothing of rounds."""
