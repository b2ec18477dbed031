"""The papers: a room for each, and in it a module for each figure or theorem."""

from offtangent._papers import PAPERS, Paper

__all__ = ["PAPERS", "Paper"]
