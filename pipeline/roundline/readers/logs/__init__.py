"""Server logs, one module per engine: lines in, windows of decoding out."""
