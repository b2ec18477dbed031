"""A small experiment of a user's own, to which tests add mistakes."""

SOURCE = '''
"""A trial of my own."""
import enum
from collections import namedtuple
from dataclasses import dataclass
import numpy as np
import xarray as xr
from offtangent.lab import Claim, Cost
from offtangent.lab.statistics import Interval
from offtangent.report import Figure, new_plot, points

@dataclass(frozen=True)
class Cell:
    i: object

class Level(enum.IntEnum):
    LOW = 1

class Word(enum.StrEnum):
    LOW = "low"

Pair = namedtuple("Pair", "a b")
def made(kind, /, **values):  # without the checks of types that the tests add to a constructor
    one = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(one, name, value)
    return one

PROFILES = {"smoke": 2}
WORDS = {"source": "arithmetic", "statement": "squares are small", "measured": "the largest"}

ODD = Claim.at_most(4.0, 100, **WORDS)

def cells(count):
    return [Cell(i) for i in range(count)]

def run(cell):
    return xr.Dataset({"square": 4.0})

def claims(results):
    yield Claim.at_most(4.0, 100, **WORDS)

def draw(results):
    return [Figure("A figure of mine", "Of two points.", plot())]

def plot():
    return points(new_plot(), [1, 2], [1, 2], name="p", colour="blue")
'''
HOW = ("--profile", "smoke", "--on", "local")


def function(name, body):
    return f"def {name}(given):\n    {body}\n"
