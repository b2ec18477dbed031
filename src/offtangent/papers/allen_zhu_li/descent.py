r"""Theorem 1's proof along SGD: Algorithm 1 moves towards (W⋆, V⋆), and how large is what the proof throws away.

At every step $\Xi_t = \langle\nabla\mathrm{Obj}, (W_t - W^\star, V_t - V^\star)\rangle$ is at least
$\frac12\|H - \mathrm{out}\|^2 - 2\|Err_t\|^2$, where Err is what Claim D.6 bounds. Summed up, this bounds the mean
error of the run (D.4), as long as $\|W_t\|_F \le \tau_w$ and $\|V_t\|_F \le \tau_v$ (D.3). All of this is measured: Ξ
by automatic differentiation, Err by Fact D.4's formulas with the W⋆ and V⋆ of Lemma D.2, the gradients of Claim D.5,
Claim D.7, and the quantities of Lemma D.1, which along SGD are far from their worst case. By Fact D.4
$\Xi = \langle H - \mathrm{out}, H - \mathrm{out} + Err\rangle$, and then the bound on Ξ is algebra: what it tests is
Fact D.4, the formula of the gradient.

The targets are of Concept 2. Rates and steps are those of Theorem 1, with Õ and Θ̃ as one, and a sample is used once.
The radii are taken in two ways. `stated`: from complexities with C* = 2, as `theorem1` has them, k = 1 and τ_v = 0.4;
then every condition that has a number is met. Otherwise, k = 2, as ten times ‖W⋆‖_F and ‖V⋆‖_F, which are smaller, and
α and δ lie below what the theorem asks for with those complexities: its claims are outside. Widths are such that
σ_v(√k + √(k + 1))/√(2m), what ‖AD_V⁰V⁰‖₂ is at the start, is below Lemma D.1(f)'s bound.

Neither tells whether G is learnt: inside, ‖αG(F)‖² is thousands of times below the δ that is promised. A δ below
α²‖G(F)‖² ~ α² wants τ_v⁴ ~ (80α)⁴ < α², so α < 10⁻⁴, and then τ_w²/δ² > 10¹⁸ steps. Where G matters Algorithm 1 is
run outside, in `allen_zhu_li/corollary71`.

Nor is the order α⁴ of that least δ judged here, or how T grows as δ falls: at these radii δ may lie between τ_v⁴(1 +
𝔅_F)² = 0.05 and the 0.2 that the network starts with, and a tenth of the former takes a hundred times the steps. No
slope can be had over less than one decade. With `optimum` above 0 labels have noise of this risk, OPT, which δ allows
for.

One kind of cell: a width and a δ, each seed with its own network, target and samples.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float

from offtangent.data import sphere
from offtangent.data.hierarchy import GeneralRidges, Hierarchy
from offtangent.lab import Claim, Cost, Results
from offtangent.networks import ResNet
from offtangent.networks.resnet import Hidden
from offtangent.papers.allen_zhu_li import descent_report
from offtangent.report import Figure
from offtangent.theory.allen_zhu_li.concept import composite_bound, concept_complexity
from offtangent.theory.allen_zhu_li.gradients import coupling, descent_parts, sign_changes
from offtangent.theory.allen_zhu_li.indicator import existence_hidden, existence_norm
from offtangent.theory.allen_zhu_li.parameters import ENOUGH, ROOM, ResNetSettings, resnet_settings, theorem1
from offtangent.training import HalfSquares, train
from offtangent.training.two_rates import residual_sgd

BASE = (0.25, 0.25)  # of F: c_0, c_1
COMPOSITE = (0.0, 1.0)  # of G
TAU_V = 0.45  # 10‖V⋆‖_F, which fixes α
STATED_TAU_V = 0.4  # 10αk p_G 𝔠_s(G), likewise
PER_SAMPLE = ("gap", "error", "correlation", "base", "first", "second", "b", "f", "gradient_w", "gradient_v")
MEANS = ("gap", "error", "correlation", "first", "second")  # over samples, kept at every moment
TINY = 1e-12  # of a squared error: below it a ratio would be rounding


@dataclass(frozen=True)
class Descent:
    """Runs of Algorithm 1 at one width."""

    width: int
    delta: float  # what Theorem 1 aims at
    dim: int
    samples: int  # fresh ones on which the proof's quantities are measured
    moments: int  # how often
    seeds: int
    outputs: int = 2
    stated: bool = False  # whether τ_w and τ_v are `theorem1`'s, and not ten times the norms of W⋆ and V⋆
    optimum: float = 0.0  # OPT, the mean of ½‖H(x) − y‖²: that of independent Gaussian noise on the labels


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...]
    delta: float
    moments: int
    seeds: int
    stated: tuple[tuple[int, ...], float] = ((8192,), 0.3)  # widths and δ of the cells with `theorem1`'s radii
    dim: int = 5
    samples: int = 32
    noisy: tuple[tuple[int, ...], float, float] = ((8192,), 0.3, 0.15)  # widths, δ and OPT, with `theorem1`'s radii


PROFILES = {
    "smoke": Config((8192,), 0.2, 9, 3),
    "laptop": Config((8192, 16_384), 0.1, 33, 3, stated=((8192,), 0.25)),
    "paper": Config(
        (8192, 32_768, 131_072), 0.1, 65, 10, stated=((8192, 16_384, 32_768), 0.1), noisy=((8192, 32_768), 0.1, 0.05)
    ),
}


def cells(config: Config) -> list[Descent]:
    rest = (config.dim, config.samples, config.moments, config.seeds)
    widths, delta = config.stated
    wide, allowed, optimum = config.noisy
    return [
        *(Descent(width, config.delta, *rest) for width in config.widths),
        *(Descent(width, delta, *rest, outputs=1, stated=True) for width in widths),
        *(Descent(width, allowed, *rest, outputs=1, stated=True, optimum=optimum) for width in wide),
    ]


def cost(cell: Descent) -> Cost:
    per = 6 * cell.width * (cell.dim + 1 + 4 * cell.outputs)
    steps = (225 if cell.stated else 130) / cell.delta**2
    return Cost(cell.seeds * per * (steps + 10 * cell.moments * cell.samples), 40 * cell.samples * cell.width * 8 + 1e7)


def run(cell: Descent) -> xr.Dataset:
    settings, alpha = None, 0.0
    parts = []
    optimiser = None
    for seed in range(cell.seeds):
        key = jax.random.key(seed)
        F = GeneralRidges.random(cell.dim, cell.outputs, 1, BASE, key=key)
        G = GeneralRidges.random(cell.outputs, cell.outputs, 1, COMPOSITE, key=jax.random.fold_in(key, 1))
        if settings is None or optimiser is None:  # norms depend on the series alone; one optimiser compiles once
            alpha, settings = _settings(cell, F, G)
            assert settings.applies, settings.problems
            optimiser = residual_sgd(settings.rate_w, settings.rate_v)
        parts.append(_one(cell, settings, alpha, F, G, optimiser, jax.random.fold_in(key, 2)))
    return xr.concat(parts, dim="seed").assign_coords(seed=np.arange(cell.seeds))


def _settings(cell: Descent, F: GeneralRidges, G: GeneralRidges) -> tuple[float, ResNetSettings]:
    """α, and the radii and rates of the cell."""
    sizes: dict[str, Any] = {"outputs": cell.outputs, "width": cell.width, "delta": cell.delta}
    if not cell.stated:
        alpha = TAU_V / (10 * existence_norm(G))
        return alpha, resnet_settings(tau_w=10 * existence_norm(F), tau_v=TAU_V, **sizes)
    base, composite = (concept_complexity(one, constant=ENOUGH) for one in (F, G))
    alpha = STATED_TAU_V / (ROOM * composite.outputs * composite.terms * composite.smooth)
    least = theorem1(base, composite, alpha=alpha, width=cell.width, base_bound=0.0)
    return alpha, resnet_settings(tau_w=least.tau_w, tau_v=least.tau_v, **sizes)


def claims(results: Results) -> list[Claim]:
    return descent_report.claims(results)


def draw(results: Results) -> list[Figure]:
    return descent_report.figures(results)


class _Monitor(eqx.Module):
    """What is measured at one moment: a row for each name in PER_SAMPLE, a column for each sample."""

    net: ResNet
    X: Float[Array, "n d"]
    base: Float[Array, "n k"]
    target: Float[Array, "n k"]
    star: Hidden

    def __call__(self, params: Hidden) -> Float[Array, "q n"]:
        point = descent_parts(self.net, params, self.X, self.target, self.star)
        changes, norms = sign_changes(self.net, params, self.X), coupling(self.net, params, self.X)

        def objective(hidden: Hidden, x: Array, y: Array) -> Array:
            return 0.5 * jnp.sum((y - self.net(hidden, x[None])[0]) ** 2)

        gradients = jax.vmap(jax.grad(objective), in_axes=(None, 0, 0))(params, self.X, self.target)
        missed = jnp.linalg.norm(self.net.first(params, self.X) - self.base, axis=1)
        rows = (
            *point, missed, changes.first.astype(missed.dtype), changes.second.astype(missed.dtype), norms.b, norms.f,
            *(jnp.sqrt(jnp.sum(g**2, axis=(1, 2))) for g in gradients),
        )  # fmt: skip
        return jnp.stack(rows)


class _Norms(eqx.Module):
    def __call__(self, params: Hidden) -> Float[Array, " 2"]:
        return jnp.stack([jnp.linalg.norm(params.W), jnp.linalg.norm(params.V)])


def _one(
    cell: Descent,
    settings: ResNetSettings,
    alpha: float,
    F: GeneralRidges,
    G: GeneralRidges,
    optimiser: optax.GradientTransformation,
    key: Array,
) -> xr.Dataset:
    of_net, of_data, of_order = jax.random.split(key, 3)
    net = ResNet.theory(
        dim=cell.dim,
        outputs=cell.outputs,
        width=cell.width,
        sigma_w=settings.sigma_w,
        sigma_v=settings.sigma_v,
        key=of_net,
    )
    W, V = existence_hidden(net, F, G, alpha=alpha, sigma_w=settings.sigma_w, sigma_v=settings.sigma_v)
    H, T = Hierarchy(F, G, alpha), settings.steps
    X = sphere(T + cell.samples, cell.dim, key=of_data)
    y, fresh = H(X), X[T:]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(of_data)))
    noise = rng.normal(0, np.sqrt(2 * cell.optimum / cell.outputs), (T, cell.outputs))
    star = Hidden(jnp.asarray(W, jnp.float32), jnp.asarray(V, jnp.float32))
    inputs, signal, target = (jnp.asarray(part, jnp.float32) for part in (fresh, F(fresh), y[T:]))
    monitor = _Monitor(net, inputs, signal, target, star)
    at = np.unique(np.linspace(0, T, cell.moments).astype(int))
    history = train(
        HalfSquares(net), net.origin, X[:T], y[:T] + noise, optimiser=optimiser, steps=T, batch=1, key=of_order,
        record={"proof": monitor, "norms": _Norms()}, record_at=at,
    )  # fmt: skip
    sizes_F, sizes_G = concept_complexity(F), concept_complexity(G)
    bound = float(np.linalg.norm(F(X), axis=1).max())
    numbers = {
        "alpha": alpha, "base_bound": bound, "composite_bound": composite_bound(sizes_G, bound),
        "lipschitz": sizes_G.lipschitz, "tilde": alpha / (cell.outputs * (sizes_F.smooth + sizes_G.smooth)),
        "star_w": float(np.linalg.norm(W)), "star_v": float(np.linalg.norm(V)),
        # Of H, not of y: every sample is used once, and the network knows nothing of its noise before.
        "mean_gap": 2 * float(history.losses[:T].sum(axis=1).mean()) - float((noise**2).sum(axis=1).mean()),
        "norm_a": float(np.linalg.norm(np.asarray(net.A), 2)), "norm_v0": float(np.linalg.norm(np.asarray(net.V0), 2)),
        "signal": float((np.linalg.norm(H.parts(fresh)[1], axis=1) ** 2).mean()),
        **{name: float(getattr(settings, name)) for name in ("tau_w", "tau_v", "sigma_v", "rate_w", "rate_v", "steps")},
    }  # fmt: skip
    return kept(history.records["proof"].astype(np.float64)).assign(
        {name: ((), value) for name, value in numbers.items()}
        | {"norms": (("moment", "layer"), history.records["norms"].astype(np.float64))}
    ).assign_coords(moment=at)  # fmt: skip


def kept(proof: Float[np.ndarray, "t q n"]) -> xr.Dataset:
    """What is kept of all moments and samples: means over samples, and what the proof bounds where it is largest.

    `slack`: the least Ξ − ½‖H − out‖² + 2‖Err‖², over ‖H − out‖² + ‖Err‖². `far`: the largest ‖out₁ − F‖ − 2‖H − out‖.
    `gradient_w` and `gradient_v`: the largest norms over ‖H − out‖.
    """
    of = {name: proof[:, row] for row, name in enumerate(PER_SAMPLE)}
    gap, error = of["gap"], of["error"]
    slack = (of["correlation"] - gap / 2 + 2 * error) / np.maximum(gap + error, TINY)
    norm = np.sqrt(np.maximum(gap, TINY))
    extremes = {
        "slack": slack.min(), "far": (of["base"] - 2 * np.sqrt(gap)).max(),
        "b": of["b"].max(), "mean_b": of["b"].mean(), "f": of["f"].max(),
        "gradient_w": (of["gradient_w"] / norm).max(), "gradient_v": (of["gradient_v"] / norm).max(),
    }  # fmt: skip
    means = {name: ("moment", of[name].mean(axis=1)) for name in MEANS}
    return xr.Dataset(means | {name: ((), float(value)) for name, value in extremes.items()})
