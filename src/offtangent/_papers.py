"""What each paper is called, and the names of its experiments, which are modules of `offtangent.papers`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments, by name of module."""

    name: str  # in code and on the command line
    authors: str
    title: str
    year: int
    experiments: tuple[str, ...]


PAPERS = (
    Paper(
        "arora",
        "Arora, Du, Hu, Li, Wang",
        "Fine-Grained Analysis of Optimization and Generalization for Overparameterized Two-Layer Neural Networks",
        2019,
        ("fig1", "fig2", "lemmas", "section6", "again"),
    ),
    Paper(
        "bai_lee",
        "Bai, Lee",
        "Beyond Linearization: On Quadratic and Higher-Order Approximation of Wide Neural Networks",
        2020,
        ("coupling", "landscape", "constructions", "samples", "orders", "again"),
    ),
    Paper(
        "nichani",
        "Nichani, Bai, Lee",
        "Identifying good directions to escape the NTK regime and efficiently learn low-degree plus sparse polynomials",
        2022,
        ("fig1", "spectrum", "constructions", "directions", "appendix_g", "fig2", "taylor"),
    ),
    Paper(
        "ge_wang_zhao",
        "Ge, Wang, Zhao",
        "Mildly Overparametrized Neural Nets Can Memorize Training Data Efficiently",
        2019,
        ("synthetic", "mnist", "phases", "landscape", "lemmas"),
    ),
    Paper(
        "allen_zhu_li",
        "Allen-Zhu, Li",
        "What Can ResNet Learn Efficiently, Going Beyond Kernels?",
        2019,
        ("fig2", "hierarchy", "theorem2", "corollary71", "coupling", "existence", "descent", "norms"),
    ),
)
