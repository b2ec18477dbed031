"""Commands for maintainers, run from the repository's root: python -m tools.judged, python -m tools.smoke."""
