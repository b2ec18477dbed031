"""The landscape at many points at once: Lemma 1, Theorem 2, Corollary 3 and what the lemmas bound, in one program.

What `clean_landscape`, `randomised_landscape`, `penalty_landscape` and `risk_closeness` give one point at a time, for a
stack of points: one compilation, and a device kept busy.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_entries, check_magnitude
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.theory.bai_lee.closeness import Closeness, closeness_of, known_constants, measure
from offtangent.theory.bai_lee.landscape import LandscapeInequality, check_contract
from offtangent.theory.bai_lee.penalties import LANDSCAPE_CONSTANT
from offtangent.theory.bai_lee.risks import RandomisedRisk
from offtangent.theory.bai_lee.signs import in_float64, standard_error

CHUNK = 1 << 24  # numbers held at once while points are gone through


@dataclass(frozen=True)
class LandscapePoint:
    """The inequalities at one W, all with OPT = L^Q(W⋆) and ε = 0."""

    clean: LandscapeInequality  # Lemma 1, eq. (5), with its exact last term
    randomised: LandscapeInequality  # Theorem 2, eq. (7)
    regularised: LandscapeInequality  # Corollary 3, eq. (8)
    penalty: LandscapeInequality  # what ‖W‖⁸ alone adds
    close: Closeness  # Lemmas 10, 12, 13, 14


def landscape_survey(
    risk: RandomisedRisk,
    W: Float[AnyArray, "..."],
    W_star: Float[AnyArray, "..."],
    *,
    strengths: Float[np.ndarray, " l"] | None = None,
    constants: tuple[float, float, float] | None = None,
) -> list[LandscapePoint]:
    """All inequalities at each of k points W (k × d × m), with one W⋆ (d × m) or one for each, in float64 on the host.

    `strengths` are λ for each point, by default the risk's. `constants` are those of Assumption A (`risk_closeness`).
    Time O(k(ndm + snm)) for s signs; memory O(nm) for as many points at once as fit in 2²⁴ numbers.
    """
    known = known_constants(risk.net, constants)
    check_contract(risk.loss)
    shape = risk.net.W0.shape
    if W.ndim != 3 or W.shape[1:] != shape or W_star.shape not in (shape, W.shape):
        raise InputError(
            f"W has shape {W.shape} and W_star {W_star.shape}: expected (k, {shape[0]}, {shape[1]}) and the same or "
            f"{shape}. One point is W[None]."
        )
    check_entries(W=W, W_star=W_star)
    check_magnitude(8, W=W, W_star=W_star)
    count = len(W)
    lams = np.full(count, float(risk.strength)) if strengths is None else np.asarray(strengths, np.float64)
    if lams.shape != (count,) or not (np.isfinite(lams) & (lams >= 0)).all():
        raise InputError(f"strengths has shape {lams.shape}: expected {count} numbers λ, zero or positive.")
    with jax.enable_x64(True):
        here, there = (np.asarray(V, np.float64) for V in (W, W_star))
        found = _measure(in_float64(risk), jnp.asarray(here), jnp.asarray(np.broadcast_to(there, here.shape)))
        clean, pairs, sizes = ({name: np.asarray(one) for name, one in part.items()} for part in found)
    rows = []
    for k, lam in enumerate(lams.tolist()):
        still, size = ({name: float(values[k]) for name, values in part.items()} for part in (clean, sizes))
        rows.append(_point(risk, still, {name: values[k] for name, values in pairs.items()}, size, lam, known))
    return rows


def _point(
    risk: RandomisedRisk,
    clean: dict[str, float],
    pairs: dict[str, Float[np.ndarray, " s"]],
    size: dict[str, float],
    lam: float,
    constants: tuple[float, float, float],
) -> LandscapePoint:
    close = closeness_of(risk, clean, pairs, size, constants)
    opt = clean.pop("best")
    means = {name: float(values.mean()) for name, values in pairs.items()}
    error = 0.0 if risk.exact else standard_error(pairs["descent"] - 2 * pairs["loss"] - pairs["curvature"])
    power, room = size["power"], LANDSCAPE_CONSTANT * size["power_star"] - size["power"]
    return LandscapePoint(
        clean=LandscapeInequality(opt=opt, **clean),
        randomised=LandscapeInequality(opt=opt, allowance=0.0, error=error, **means),
        regularised=LandscapeInequality(
            curvature=means["curvature"] + lam * size["power_curvature"],
            descent=means["descent"] + 8 * lam * power,
            loss=means["loss"] + lam * power,
            opt=opt,
            allowance=lam * room,
            error=error,
        ),
        penalty=LandscapeInequality(size["power_curvature"], 8 * power, power, 0.0, room),
        close=close,
    )


@eqx.filter_jit
def _measure(
    risk: RandomisedRisk, W: Float[Array, "k d m"], W_star: Float[Array, "k d m"]
) -> tuple[dict[str, Float[Array, "..."]], ...]:
    batch = max(1, min(len(W), CHUNK // (8 * len(risk.X) * (risk.net.width + len(risk.signs)))))

    def one(pair: tuple[Float[Array, "d m"], Float[Array, "d m"]]) -> tuple[dict[str, Float[Array, "..."]], ...]:
        return measure(risk, *pair)

    return jax.vmap(one)((W, W_star)) if batch == len(W) else jax.lax.map(one, (W, W_star), batch_size=batch)
