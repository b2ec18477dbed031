"""The learners of Nichani, Bai & Lee's Figure 1, many at once: every seed and every λ in one program.

Gradient descent on mean squares of y − f with f = f_L + f_Q (or f_L, f_Q, or the network itself), and λ₃R₃. R₃ is the
paper's estimate with the training features' own singular vectors, n⁻¹‖(I − UUᵀ) f_L(X; W)‖²: λ₃ is on the *mean*. (The
figure's legend is for λ₃ on the sum, λ₃(mean) = n λ₃(sum).)
"""

import math
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from offtangent import data
from offtangent.data.targets import LowDegreePlusSparse, gaussian_target, sphere_target
from offtangent.networks import TwoLayer
from offtangent.special import activation
from offtangent.special.activations import Activation, shifted
from offtangent.taylor.two_layer import OnInputs
from offtangent.theory import FeatureCovariance
from offtangent.theory.bai_lee.signs import quadratic_expansion
from offtangent.theory.nichani.bases import Basis
from offtangent.theory.nichani.covariance import Samples
from offtangent.theory.nichani.escape import Energies
from offtangent.theory.nichani.tangent import LinearPart, TangentFeatures

SIGMAS = {"softplus": activation("softplus"), "sigmoid": shifted("sigmoid", 1.0)}
SEEDS = (1, 11, 111, 1111, 11111)  # those of the authors
BLOCK = 1000  # test inputs at once, for one network


@dataclass(frozen=True, eq=False)
class Problem:
    """One seed: the network at its start, training and test inputs with their labels, the spectrum of the features."""

    net: TwoLayer
    target: LowDegreePlusSparse
    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    X_test: Float[np.ndarray, "t d"]
    y_test: Float[np.ndarray, " t"]
    training: FeatureCovariance  # of all n training inputs

    @property
    def vectors(self) -> Float[np.ndarray, "n r"]:
        """The left singular vectors of the training features."""
        assert isinstance(self.training.source, Samples)
        return self.training.source.vectors


def inputs(setting: str, n: int, dim: int, key: Array) -> Float[np.ndarray, "n d"]:
    """Uniform on S^{d−1}(√d), or N(0, I)."""
    return (
        data.sphere(n, dim, radius=math.sqrt(dim), key=key)
        if setting == "sphere"
        else data.distributions.gaussian(n, dim, key=key)
    )


def problem(setting: str, sigma: str, *, dim: int, samples: int, width: int, tests: int, seed: int) -> Problem:
    """The paper's problem: in its text's setting (sphere) or in its code's (Gaussian, target of unit variance)."""
    of_net, of_target, of_inputs, of_tests = jax.random.split(jax.random.key(seed), 4)
    net = TwoLayer.symmetric(dim=dim, width=width, law="sphere", activation=_sigma(sigma), key=of_net)
    target = (sphere_target if setting == "sphere" else gaussian_target)(dim, key=of_target)
    X, X_test = (inputs(setting, n, dim, key) for n, key in ((samples, of_inputs), (tests, of_tests)))
    return Problem(net, target, X, target(X), X_test, target(X_test), FeatureCovariance.of_samples(net, X))


def _sigma(name: str) -> Activation:
    return SIGMAS[name]


def stack(parts: list[Any]) -> Any:
    """Modules of one shape as one, with a first axis on every array."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *parts)


class Learners(eqx.Module):
    """All networks of a sweep, weights W of shape (seeds, λ's, d, m): an objective for `train`, of values (seeds, λ's).

    A step costs what one product XW and one back cost for each network, O(ndm), and a pass over n·m entries.
    """

    on: OnInputs  # one for each seed
    nets: TwoLayer
    vectors: Float[Array, "s n r"]
    strengths: Float[Array, " l"]  # λ₃
    model: str = eqx.field(static=True)

    @classmethod
    def of(cls, problems: list[Problem], *, rank: int, strengths: tuple[float, ...], model: str) -> "Learners":
        nets = stack([one.net for one in problems])
        X = jnp.asarray(np.stack([one.X for one in problems]), jnp.float32)
        on = eqx.filter_vmap(lambda net, X: quadratic_expansion(net).on(X))(nets, X)
        vectors = np.stack([one.vectors[:, :rank] for one in problems])
        return cls(on, nets, jnp.asarray(vectors, jnp.float32), jnp.asarray(strengths, jnp.float32), model)

    def __call__(self, W: Float[Array, "s l d m"], X: Float[Array, "n s d"], y: Float[Array, "n s"]) -> Array:
        train, residual, _ = self.parts(W, X, y)
        return train + self.strengths * residual

    def parts(
        self, W: Float[Array, "s l d m"], X: Float[Array, "n s d"], y: Float[Array, "n s"]
    ) -> tuple[Array, Array, Array]:
        """The training loss, R₃ and n⁻¹‖f_L‖², each of shape (seeds, λ's)."""

        def one(W: Array, on: OnInputs, net: TwoLayer, U: Array, X: Array, y: Array) -> tuple[Array, Array, Array]:
            _, linear, quadratic = on.terms(W)
            f = net(W, X) if self.model == "network" else _output(self.model, linear, quadratic)
            left = linear - U @ (U.T @ linear)
            return jnp.mean((f - y) ** 2), jnp.mean(left**2), jnp.mean(linear**2)

        over = jax.vmap(one, (0, None, None, None, None, None))
        axes = (0, eqx.if_array(0), eqx.if_array(0), 0, 1, 1)
        return eqx.filter_vmap(over, in_axes=axes)(W, self.on, self.nets, self.vectors, X, y)


class Seen(eqx.Module):
    """What `Learners.parts` gives, for `record=`: shape (3, seeds, λ's)."""

    learners: Learners
    X: Float[Array, "n s d"]
    y: Float[Array, "n s"]

    @classmethod
    def of(cls, problems: list[Problem], learners: Learners) -> "Seen":
        X, y = rows(problems)
        return cls(learners, jnp.asarray(X), jnp.asarray(y))

    def __call__(self, W: Float[Array, "s l d m"]) -> Float[Array, "3 s l"]:
        return jnp.stack(self.learners.parts(W, self.X, self.y))


def _output(model: str, linear: Array, quadratic: Array) -> Array:
    return {"joint": linear + quadratic, "linear": linear, "quadratic": quadratic}[model]


class Tested(eqx.Module):
    """Mean squares of y − f on the test inputs, in blocks: the sum over each half of them, shape (seeds, λ's, 2)."""

    nets: TwoLayer
    X: Float[Array, "s b t d"]
    y: Float[Array, "s b t"]
    model: str = eqx.field(static=True)

    @classmethod
    def of(cls, problems: list[Problem], learners: Learners) -> "Tested":
        blocks = 2 * math.ceil(len(problems[0].y_test) / (2 * BLOCK))
        X = np.stack([np.reshape(one.X_test, (blocks, -1, one.X_test.shape[1])) for one in problems])
        y = np.stack([np.reshape(one.y_test, (blocks, -1)) for one in problems])
        return cls(learners.nets, jnp.asarray(X, jnp.float32), jnp.asarray(y, jnp.float32), learners.model)

    def __call__(self, W: Float[Array, "s l d m"]) -> Float[Array, "s l 2"]:
        def one(W: Array, net: TwoLayer, X: Array, y: Array) -> Array:
            if self.model == "network":
                f = net(W, X)
            else:
                f = _output(self.model, *quadratic_expansion(net).on(X).terms(W)[1:])
            return jnp.mean((f - y) ** 2)

        def seed(W: Array, net: TwoLayer, X: Array, y: Array) -> Array:
            blocks = jax.lax.map(lambda part: jax.lax.map(lambda V: one(V, net, *part), W), (X, y))
            return jnp.mean(blocks.reshape(2, -1, len(W)), axis=1).T

        return jax.lax.map(lambda part: seed(*part), (W, self.nets, self.X, self.y))


class Split(eqx.Module):
    """E f_L² and E f_Q² over the test inputs: shape (seeds, λ's, 2)."""

    nets: TwoLayer
    X: Float[Array, "s t d"]

    @classmethod
    def of(cls, problems: list[Problem], learners: Learners) -> "Split":
        return cls(learners.nets, jnp.asarray(np.stack([one.X_test for one in problems]), jnp.float32))

    def __call__(self, W: Float[Array, "s l d m"]) -> Float[Array, "s l 2"]:
        def seed(part: tuple[TwoLayer, Array, Array]) -> Array:
            net, X, V = part
            return Energies(quadratic_expansion(net).on(X))(V)

        return jax.lax.map(seed, (self.nets, self.X, W))


class OnTests(eqx.Module):
    """E f_L(x; Π_{>r}W)² over the test inputs, Π of the training features: shape (seeds, λ's)."""

    linear: LinearPart  # one for each seed, on test inputs
    images: Float[Array, "s t r"]
    basis: Basis

    @classmethod
    def of(cls, problems: list[Problem], rank: int) -> "OnTests":
        return cls(
            stack([TangentFeatures.of(one.net, one.X_test).linear() for one in problems]),
            jnp.asarray(np.stack([one.training.images(one.X_test, rank) for one in problems]), jnp.float32),
            stack([one.training.basis(0, rank) for one in problems]),
        )

    def __call__(self, W: Float[Array, "s l d m"]) -> Float[Array, "s l"]:
        def one(linear: LinearPart, images: Array, basis: Basis, V: Array) -> Array:
            return jnp.mean((linear(V) - images @ basis.coordinates(V)) ** 2)

        def seed(part: tuple[LinearPart, Array, Basis, Array]) -> Array:
            return jax.lax.map(lambda V: one(*part[:3], V), part[3])

        return jax.lax.map(seed, (self.linear, self.images, self.basis, W))


def rates(problems: list[Problem], *, rank: int, strengths: tuple[float, ...], rate: float) -> Float[np.ndarray, "s l"]:
    """The rate, or half of 2/λ_max of f_L's part of the Hessian, 2n⁻¹(ΦΦᵀ + λ₃(I − UUᵀ)ΦΦᵀ), where that is less."""
    values = np.stack([one.training.values[[0, rank]] for one in problems])  # of ΦΦᵀ/n: the first, and the first of V₂
    curvature = 2 * np.maximum(values[:, :1], (1 + np.array(strengths)) * values[:, 1:])
    return np.minimum(rate, 1 / curvature)


def risk_curvature(problems: list[Problem], *, rank: int, fresh: int) -> Float[np.ndarray, " s"]:
    """The largest eigenvalue of R₁'s form on this many fresh inputs: λ₁R₁ adds 2λ₁ times it to the Hessian."""
    found = []
    for one in problems:
        features = TangentFeatures.of(one.net, one.X_test[:fresh])
        known = one.training.images(one.X_test[:fresh], rank)
        found.append(float(np.linalg.eigvalsh((features.gram() - known @ known.T) / fresh)[-1]))
    return np.array(found)


def descent(each: Float[np.ndarray, "s l"]) -> optax.GradientTransformation:
    """Plain gradient descent with a rate for each network."""
    return optax.stateless(lambda updates, _: -jnp.asarray(each, updates.dtype)[:, :, None, None] * updates)


def begin(problems: list[Problem], *, count: int, scale: float) -> Float[Array, "s l d m"]:
    """W(0) = scale · N(0, 1), the same for every λ of a seed."""
    dim, width = problems[0].net.W0.shape
    keys = jnp.stack([jax.random.fold_in(jax.random.key(7), i) for i in range(len(problems))])
    W = scale * jax.vmap(lambda key: jax.random.normal(key, (dim, width)))(keys)
    return jnp.broadcast_to(W[:, None], (len(problems), count, dim, width))


def rows(problems: list[Problem]) -> tuple[Float[np.ndarray, "n s d"], Float[np.ndarray, "n s"]]:
    """Training inputs and labels with samples first, as `train` wants them."""
    X, y = (np.stack(part, axis=1) for part in zip(*((one.X, one.y) for one in problems), strict=True))
    return X.astype(np.float32), y.astype(np.float32)


def looks(steps: int, count: int) -> np.ndarray:
    """Numbers of steps to look at: evenly spaced in log(t + 1), from 0 to the end."""
    return np.unique(np.round(np.geomspace(1, steps + 1, count)).astype(int) - 1)
