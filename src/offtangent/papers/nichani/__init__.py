"""Nichani, Bai and Lee (2022): directions in which a network learns beyond its tangent kernel without overfitting."""
