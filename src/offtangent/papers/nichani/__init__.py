"""Nichani, Bai and Lee (2022): the directions in which a network learns beyond its tangent kernel, kept apart from those that overfit."""
