"""Synthetic captures in real formats, with known truth.

An engine program says what one round launches (`engines`), the machine runs it on ranks whose
hosts, streams and collectives meet (`machine`), the result is a model of a capture (`timeline`),
its truth is counted by brute force (`truth`), and writers put it into the formats of profilers.
Same options and seed, same bytes: there is no clock and no other source of chance.
"""
