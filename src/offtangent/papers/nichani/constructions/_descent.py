"""Perturbed descent on the regularised loss, many networks at once: from zero, or, in `theorem4`, from W⋆.

`stated` takes Theorem 4's λ and labels with ℓ(y, 0) ≤ 1; `corollary1` and `theorem4` the λ with λᵢRᵢ(W⋆) ≈ ε_min and
labels of any size. Training is in float32; what is measured, in float64.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

from offtangent._host import on_host
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.lab import Cost
from offtangent.papers.nichani.constructions._setting import MOST, SIGMAS, bounded, network, on_sphere, planted
from offtangent.special.sphere import polynomial_dimension
from offtangent.taylor import certificate
from offtangent.taylor.curvature import Certificate
from offtangent.theory import FeatureCovariance
from offtangent.theory.bai_lee.penalties import LANDSCAPE_CONSTANT
from offtangent.theory.bai_lee.signs import in_float64
from offtangent.theory.nichani.choice import RegulariserSizes, regulariser_choice
from offtangent.theory.nichani.joint import JointExpression, express_jointly
from offtangent.theory.nichani.landscape import JointLandscape
from offtangent.theory.nichani.risk import JointRisk, loss_on_host
from offtangent.theory.nichani.sparse import SphereRidge
from offtangent.training.directions import perturbed_descent

# η: the features of the sigmoid are an eighth in square.
RATES = {"softplus": 1.0, "sigmoid": 8.0}
# σ: the length of the noise on a gradient.
NOISE = 0.1
# Tolerance of a curvature, over the largest.
LOOSE = 1e-2


@dataclass(frozen=True, eq=False)
class Problem:
    """One seed with k = 1 and R = 1: its target, W⋆, λ, and the landscape of L_λ."""

    target: LowDegreePlusSparse
    star: JointExpression
    strengths: RegulariserSizes
    land: JointLandscape

    @property
    def risk(self) -> JointRisk:
        """L_λ as a function to descend on."""
        star = self.star
        return JointRisk.of(star.covariance, star.X, star.y, rank=star.rank, strengths=self.strengths)

    def loss(self, X: Float[np.ndarray, "n d"], W: Float[np.ndarray, "d m"]) -> float:
        """Compute the mean loss of the network itself on inputs, in float64."""
        net = self.star.covariance.net
        hidden = on_host(net.activation, X @ (np.asarray(net.W0, np.float64) + W))
        outputs = np.asarray(hidden @ np.asarray(net.a, np.float64) / math.sqrt(net.width))
        return float(np.mean(loss_on_host(self.star.criterion, self.target(X), outputs)))


def problems(
    seeds: int, *, sigma: str, width: int, dim: int, samples: int, epsilon: float, stated: bool = False
) -> list[Problem]:
    """Draw the problems of all seeds. A seed has one target at every n and m; Σ comes from 30 n₁ unlabelled inputs.

    `stated`, λ is Theorem 4's and the target is `bounded`; otherwise λ is such that λᵢRᵢ(W⋆) ≈ ε_min.
    """
    rank, drawn = polynomial_dimension(dim, 1), []
    for seed in range(seeds):
        of_net, of_target, unlabelled, of_inputs, of_signs = jax.random.split(jax.random.key(seed), 5)
        net = network(sigma, dim, width, key=jax.random.fold_in(of_net, width))
        target = bounded(dim, key=of_target) if stated else planted(dim, 1, 1, key=of_target)
        covariance = FeatureCovariance.of_samples(net, on_sphere(30 * rank, dim, key=unlabelled), count=rank)
        star = express_jointly(covariance, on_sphere(samples, dim, key=of_inputs), target, key=of_signs)
        lams = regulariser_choice(dim, width, 1, epsilon).strengths if stated else star.strengths(epsilon)
        drawn.append(Problem(target, star, lams, JointLandscape.of(star, strengths=lams)))
    return drawn


@cache
def too_large(seeds: int, dim: int, samples: int) -> float:
    """Count the share of the training labels of `problems`, not `stated`, that have ℓ(y, 0) > 1."""
    shares = []
    for seed in range(seeds):
        _, of_target, _, of_inputs, _ = jax.random.split(jax.random.key(seed), 5)
        labels = planted(dim, 1, 1, key=of_target)(on_sphere(samples, dim, key=of_inputs))
        shares.append(float(np.mean(np.abs(labels) > MOST)))
    return float(np.mean(shares))


def fourth_strength(sigma: str, dim: int) -> float:
    """Compute λ₄ of the problems that are not `stated` over the theorem's, 1/(C‖W_Q‖⁸) with E‖W_Q‖⁴ for ‖W_Q‖⁴.

    For k = 1 ‖W_Q‖⁴ is the same at every W₀; that of W⋆ = W_L + W_Q S is a little more.
    """
    norm4 = 8 * SphereRidge(np.eye(1, dim)[0], 2, SIGMAS[sigma]).energy
    return 1 / (LANDSCAPE_CONSTANT * norm4**2)


def unseen(count: int, dim: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Draw a seed's test inputs."""
    return on_sphere(count, dim, key=jax.random.key(1000 + seed))


def descended(
    problems: list[Problem], start: Float[Array, "s d m"], looks: list[int], *, rate: float
) -> Float[np.ndarray, "t s d m"]:
    """Descend from `start` and return W of every seed after each number of steps in `looks`, in float64."""
    risks = _stacked([one.risk for one in problems])
    width = start.shape[-1]
    optimiser = perturbed_descent(rate, noise=NOISE, key=jax.random.key(width))
    W, state, seen = start, optimiser.init(start), []
    for before, after in itertools.pairwise([0, *looks]):
        W, state = _advance(risks, optimiser, W, state, np.asarray(after - before, np.int32))
        seen.append(np.asarray(W, np.float64))
    found = np.stack(seen)
    if not np.isfinite(found).all():
        raise ArithmeticError(f"The descent at m = {width} diverged: its rate {rate:g} is too large.")
    return found


def stationarity(problem: Problem, W: Float[np.ndarray, "d m"], seed: int) -> Certificate:
    """Certify how stationary W is for L_λ: its gradient, and the lowest curvature by Lanczos in float64."""
    with jax.enable_x64(True):
        return certificate(in_float64(problem.risk), W, key=jax.random.key(seed), tol=LOOSE)


def arrived(data: xr.Dataset, *, nu: float, gamma: float) -> Bool[np.ndarray, " s"]:
    """Tell which of a cell's networks end at a (ν, γ)-second-order stationary point."""
    return (data["gradient"].values <= nu) & (data["lowest"].values >= -gamma)


def told(data: xr.Dataset) -> str:
    """Say what was found of gradients and curvatures."""
    return (
        f"Largest ‖∇L_λ‖ {data['gradient'].values.max():.2g}, smallest λ_min at least "
        f"{data['lowest'].values.min():.2g} (Lanczos, δ = 10⁻³)."
    )


def largest_loss(which: Bool[np.ndarray, " s"], where: str) -> str:
    """Say whose L_λ is looked at: that of the certified networks, or of all where there are none."""
    return f"the largest L_λ(Ŵ) of the {int(which.sum()) or 'runs, none of them'} certified, {where}"


def descent_cost(*, seeds: int, width: int, dim: int, samples: int, steps: int) -> Cost:
    """Count what the problems of all seeds and a descent on them take."""
    entries = seeds * (30 * polynomial_dimension(dim, 1) + samples) * width
    return Cost(entries * (steps + 50) * (6 * dim + 30) + 1e10, 8 * 6 * entries)


def _stacked(risks: list[JointRisk]) -> JointRisk:
    """L_λ of several networks of one shape, each with its own samples and regularisers: a first axis on every array."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)) if eqx.is_array(leaves[0]) else leaves[0], *risks)


@eqx.filter_jit
def _advance(
    risks: JointRisk,
    optimiser: optax.GradientTransformation,
    W: Float[Array, "s d m"],
    state: optax.OptState,
    steps: Int[np.ndarray | Array, ""],
) -> tuple[Float[Array, "s d m"], optax.OptState]:
    def total(V: Float[Array, "s d m"]) -> Float[Array, ""]:
        return jnp.sum(eqx.filter_vmap(lambda risk, one: risk(one))(risks, V))

    def step(
        _: Int[Array, ""], carry: tuple[Float[Array, "s d m"], optax.OptState]
    ) -> tuple[Float[Array, "s d m"], optax.OptState]:
        V, state = carry
        updates, state = optimiser.update(jax.grad(total)(V), state, V)
        return optax.apply_updates(V, updates), state

    return jax.lax.fori_loop(0, steps, step, (W, state))
