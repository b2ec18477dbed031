"""Bai and Lee (2020): networks that learn through the quadratic, and higher, terms of their Taylor series."""
