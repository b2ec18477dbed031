"""W⋆ = W_L + W_Q S: the linear part fits the low degrees of a target, the quadratic part its sparse high-degree term.

Nichani, Bai & Lee (2022), Lemma 2 and Theorem 2. W_L lies in the span of the first r = n_k eigenvectors of the feature
covariance and fits f_k; W_Q (`express_sparse`) fits f_sp. ‖W_Q‖_F grows like m^{1/4}, and with it what W_Q does
to f_L, unless its columns have random signs S: f_Q(W_Q S) = f_Q(W_Q), while in the mean over S

    R₁(W⋆) ≲ m^{−1/2} d^{(k−1)/2},   R₂(W⋆) ≲ 1,   R₃(W⋆) ≲ m^{−1/2} d^{(k−1)/2},   R₄(W⋆) ≲ d^{2(k−1)}.      (30)

So some S does as well (the probabilistic method). Here it is the best of several draws. On the host, in float64.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8, Key

from offtangent._checks import check_bound, check_count, check_inputs, check_key, check_labels
from offtangent._errors import InputError
from offtangent._types import AnyArray
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.special.losses import Loss, check_loss, pseudo_huber
from offtangent.special.sphere import polynomial_dimension
from offtangent.theory.bai_lee.expressivity import column_norm, quadratic_part
from offtangent.theory.bai_lee.penalties import LANDSCAPE_CONSTANT
from offtangent.theory.nichani.choice import RegulariserSizes
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.risk import loss_on_host
from offtangent.theory.nichani.signed import SignedRegularisers, SignMeans
from offtangent.theory.nichani.sparse import SparseExpression, express_sparse


@dataclass(frozen=True, eq=False)
class LinearExpression:
    """Weights W_L in the span of the first r eigenvectors of Σ whose linear part fits y: Lemma 2."""

    weights: Float[np.ndarray, "d m"]  # W_L, in float64
    coordinates: Float[np.ndarray, " r"]  # ⟨vⱼ, W_L⟩
    residuals: Float[np.ndarray, " n"]  # f_L(xᵢ; W_L) − yᵢ

    @property
    def error(self) -> float:
        """E_n(f_L(x; W_L) − y)²: Lemma 2 says ≲ d^k/n."""
        return float(np.mean(self.residuals**2))

    @property
    def norm2(self) -> float:
        """‖W_L‖_F²: Lemma 2 says ≲ d^{k−1}."""
        return float(np.sum(self.coordinates**2))


def express_low_degree(
    covariance: FeatureCovariance, X: Float[AnyArray, "n inputs"], y: Float[AnyArray, " n"], *, rank: int
) -> LinearExpression:
    """W_L of Lemma 2: least squares of y on f_L(·; v₁), …, f_L(·; v_r), of least norm where n < r.

    Time O(nr²) and that of `covariance.images`.

    >>> import jax
    >>> from offtangent import data, networks
    >>> net = networks.TwoLayer.symmetric(dim=4, width=400, law="sphere", activation="softplus", key=jax.random.key(0))
    >>> X = data.sphere(200, 4, radius=2.0, key=jax.random.key(1))
    >>> sigma = FeatureCovariance.of_samples(net, X)
    >>> express_low_degree(sigma, X, X[:, 0] - 1, rank=5).error < 0.02  # x₁ − 1 is a polynomial of degree 1
    True
    """
    inputs, labels = check_labels(X, y)
    check_count("rank", rank)
    images = covariance.images(inputs, rank)
    coordinates = np.linalg.lstsq(images, labels, rcond=None)[0]
    return LinearExpression(covariance.combine(coordinates), coordinates, images @ coordinates - labels)


@dataclass(frozen=True, eq=False)
class JointExpression:
    """W⋆ of Theorem 2 with its parts, its loss (28) on the training inputs and its regularisers (30)."""

    covariance: FeatureCovariance
    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]  # f⋆ there
    criterion: Loss  # ℓ
    linear: LinearExpression  # W_L
    sparse: SparseExpression  # W_Q
    signs: Int8[np.ndarray, " m"]  # S
    loss: float  # L̂^Q(W⋆) = E_n ℓ(y, f_L(x; W⋆) + f_Q(x; W⋆)), eq. (28)
    sizes: RegulariserSizes  # R₁ to R₄ at W⋆, eq. (30)
    expected: SignMeans  # R₁, R₂, R₃ of W_L + W_Q S in the mean over S, exactly
    drawn: Float[np.ndarray, " draws"]  # E_μ f_L(x; W_Q S)² + E_n f_L(x; W_Q S)² of every S drawn; W⋆ has the least
    expected_drawn: float  # and in the mean over S, exactly

    @property
    def weights(self) -> Float[np.ndarray, "d m"]:
        """W⋆ in float64."""
        return self.linear.weights + self.sparse.weights * self.signs

    @property
    def W(self) -> Float[Array, "d m"]:
        """W⋆ in the dtype of the network."""
        return jnp.asarray(self.weights, self.covariance.net.W0.dtype)

    @property
    def rank(self) -> int:
        """How many eigenvectors of Σ span W_L: n_k."""
        return len(self.linear.coordinates)

    def strengths(self, epsilon: float) -> RegulariserSizes:
        """λ₁ = ε_min/R₁, λ₂, λ₃ alike, λ₄ = ε_min/(C R₄): Theorem 4's, with the constants of (30) as they are here.

        R₁, R₂ and R₃ are those of W_L + W_Q S in the mean over S, R₄ is that of W⋆, and C = 378(14/5)³ is what the
        proof needs for ‖W‖⁸ (Bai & Lee, Corollary 3).
        """
        check_bound(epsilon=epsilon)
        means, top = self.expected, LANDSCAPE_CONSTANT * self.sizes.r4
        return RegulariserSizes(epsilon / means.r1, epsilon / means.r2, epsilon / means.r3, epsilon / top)

    def flipped(self) -> SignMeans:
        """E_S R₁, R₂, R₃ at W⋆S, with signs on all of W⋆: half of their mean Hessians [W⋆S, W⋆S] (Lemma 3)."""
        return SignedRegularisers.of(self.covariance, self.X, self.weights, rank=self.rank).means()


def express_jointly(
    covariance: FeatureCovariance,
    X: Float[AnyArray, "n inputs"],
    target: LowDegreePlusSparse,
    *,
    loss: Loss = pseudo_huber,
    draws: int = 16,
    key: Key[Array, ""],
) -> JointExpression:
    """W⋆ = W_L + W_Q S for f⋆ = f_k + f_sp on training inputs X, with r = n_k and S the best of `draws` sign vectors.

    Best: with the least E_μ f_L(x; W_Q S)² + E_n f_L(x; W_Q S)², what W_Q S does to the linear term on the population
    (R₁ + R₂) and on the training inputs. S does not move f_Q(W_Q), nor W_L R₁ and R₃. Time O((n + N)m(d + r + draws)),
    memory 8(n + N + r)m bytes for a covariance of N samples; with harmonics, O(dm²) for each draw.
    """
    check_loss(loss)
    check_key(key)
    check_count("draws", draws)
    if target.rank == 0 or target.degree == 0:
        raise InputError(
            f"The target has degree {target.degree} and rank {target.rank}: expected k ≥ 1 and a sparse term, rank ≥ 1."
        )
    inputs = check_inputs(np.asarray(X))
    net, rank = covariance.net, polynomial_dimension(target.dim, target.degree)
    labels = target(inputs)
    linear = express_low_degree(covariance, inputs, target.low(inputs), rank=rank)
    sparse = express_sparse(net, target)
    of_signs = SignedRegularisers.of(covariance, inputs, sparse.weights, rank=rank)
    tried = _signs(net.width, draws, key)
    first, third, added = of_signs.r1(tried), of_signs.r3(tried), of_signs.linear(tried)
    drawn = first + of_signs.r2(tried) + np.mean(added**2, axis=1)
    best = int(np.argmin(drawn))
    signs = tried[best]
    weights = linear.weights + sparse.weights * signs
    outputs = linear.residuals + target.low(inputs) + added[best] + quadratic_part(net, weights, inputs)
    second = float(of_signs.r2(signs[None], start=linear.coordinates)[0])
    means, own = of_signs.means(), float(linear.coordinates**2 @ of_signs.values)
    return JointExpression(
        covariance=covariance,
        X=inputs,
        y=labels,
        criterion=loss,
        linear=linear,
        sparse=sparse,
        signs=signs,
        loss=float(np.mean(loss_on_host(loss, labels, outputs))),
        sizes=RegulariserSizes(float(first[best]), second, float(third[best]), column_norm(weights, 4) ** 8),
        expected=SignMeans(means.r1, means.r2 + own, means.r3),
        drawn=drawn,
        expected_drawn=means.r1 + means.r2 + float(np.sum(of_signs.outputs**2)) / len(inputs),
    )


def _signs(width: int, draws: int, key: Key[Array, ""]) -> Int8[np.ndarray, "draws m"]:
    """Fair signs, of NumPy's generator with the key for a seed: JAX would compile its own for every width."""
    bits = np.random.default_rng(np.asarray(jax.random.key_data(key))).integers(0, 2, (draws, width), np.int8)
    return 2 * bits - 1
