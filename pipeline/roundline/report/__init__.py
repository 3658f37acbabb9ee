"""Renderers: values in, text out; nothing is computed here."""
