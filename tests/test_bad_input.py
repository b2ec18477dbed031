"""Bad input through the public functions, as from a Python shell: no traceback of JAX's, no silent wrong answer.

The calls run in a process of their own, without the run-time types of the tests, which would refuse some of them first.
"""

import json
import subprocess
import sys

import pytest

SETUP = """
import json, sys, warnings
warnings.simplefilter("ignore")
import equinox as eqx, jax, jax.numpy as jnp, numpy as np, optax
import offtangent as ot
from offtangent.data import hierarchy
from offtangent import data, kernels, labels, networks, special, taylor, theory, training
from offtangent.theory import allen_zhu_li as azl, arora, bai_lee, ge_wang_zhao, nichani
from offtangent._errors import InputError
from offtangent.regime import measure_regime
key, rng, nan, inf = jax.random.key(0), np.random.default_rng(0), float("nan"), float("inf")
def f(p, x): return jnp.tanh(x @ p["w"]) @ p["a"]
P = {"w": jnp.ones((3, 5)), "a": jnp.ones(5)}
moved = jax.tree.map(lambda leaf: 1.1 * leaf, P)
X, y = rng.standard_normal((8, 3)).astype("float32"), np.tile([-1.0, 1.0], 4)
holed = X.copy(); holed[2, 1] = nan
symmetric, TwoLayer = networks.TwoLayer.symmetric, networks.TwoLayer
net = symmetric(dim=3, width=8, activation="relu3", key=key)
squared = special.losses.squared
relu = symmetric(dim=3, width=8, activation="relu", key=key)
W = jnp.asarray(0.5 * rng.standard_normal((3, 8)), jnp.float32)
spoilt, column = W.at[0, 0].set(nan), W[:, :1]
risk, clean = theory.RandomisedRisk.of(net, X, y), bai_lee.CleanRisk.of(net, X, y)
star = bai_lee.RidgePower(np.ones(3), 4)
law = bai_lee.matched_moments(2)
summed = special.Loss("summed", lambda y, z: jnp.sum((y - z) ** 2))
polynomials = networks.PolynomialNet.gaussian(dim=3, features=10, width=22, power=1, key=key)
resnet = networks.ResNet.theory(dim=3, outputs=2, width=20, sigma_v=2.0, key=key)
smooth = hierarchy.SmoothRidges.random(3, outputs=2, terms=1, series=[0.0, 1.0, 0.5], key=key)
parity = hierarchy.Parities(3, ((0, 1),), np.ones(1))
ridges, others = smooth.general(), hierarchy.GeneralRidges.random(2, outputs=2, terms=1, series=[0.0, 1.0], key=key)
size = azl.concept_complexity(ridges, constant=2.0)
exist = dict(alpha=0.1, sigma_w=1.0, sigma_v=2.0)
cube = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]])
table = kernels.cube.CubeKernel.of("gaussian", 3)
arcsine = kernels.cube.CubeKernel.of("arcsine", 3)
wide = rng.choice([-1.0, 1.0], (2, 2000))
long = rng.standard_normal((30, 4)); signs = np.where(long[:, 0] > 0, 1.0, -1.0)
gram = kernels.Gram(kernels.relu_hidden, X).eigh()
unlike = networks.resnet.Hidden(jnp.ones((4, 1)), jnp.ones((3, 1)))
broken = eqx.tree_at(lambda net: net.W0, resnet, nan * resnet.W0)
table_file = __import__("tempfile").mkdtemp() + "/a.csv"
open(table_file, "w").write("a,b\\n1,0\\n2,1\\n")
def train(objective, **words):
    words = {"params": net.origin, "X": X, "y": y, "steps": 1} | words
    return training.train(objective, **words, optimiser=optax.sgd(0.1))
def warned(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    raise InputError(str(seen[0].message))
said = {}
for call in json.load(sys.stdin):
    try:
        found = eval(call)
        said[call] = ["a result", str(found)[:200]]
    except Exception as error:
        said[call] = [type(error).__name__, str(error)]
json.dump(said, sys.stdout)
"""

CASES = {
    # mismatched pytrees, parameters that are none
    "taylor.expand(f, P, 2).terms({'w': P['w']}, X)": "another structure",
    "taylor.expand(f, P, 2).terms(P | {'b': P['a']}, X)": "another structure",
    "taylor.expand(f, P, 2).terms(P | {'w': P['w'].T}, X)": "['w'] has shape (5, 3)",
    "taylor.expand(f, jax.tree.map(lambda leaf: nan * leaf, P), 2)": "NaN or infinite in ['a']",
    "taylor.expand(P, f, 2)": "expected a function f(params, x)",
    "kernels.empirical_ntk(f, {'w': P['w']}, X)": "KeyError: 'a'",
    "kernels.empirical_ntk(f, P | {'w': nan * P['w']}, X)": "The parameters hold 15 entries",
    "measure_regime(f, P, {'w': P['w']}, X)": "another structure",
    "measure_regime(f, P, moved, holed)": "The inputs hold 1 entry",
    "measure_regime(f, P, moved, X, np.full(8, nan))": "8 labels are NaN",
    "measure_regime(f, P, moved, X, ['cat'] * 8)": "expected numbers",
    "measure_regime(f, P, moved, X, held_out=(X, np.ones(3)))": "held-out labels have shape",
    # a function of the wrong output shape, or of other inputs
    "taylor.expand(lambda p, x: jnp.sum(x @ p), jnp.ones(3), 1).terms(jnp.ones(3), X)": "expected (n,) or (n, k)",
    "taylor.expand(lambda p, x: jnp.dot(p, x), jnp.ones(3), 1).terms(jnp.ones(3), X)": "jax.vmap(f, (None, 0))",
    "taylor.expand(f, P, 1).terms(P, X[:, :2])": "fails on x of shape (8, 2)",
    "taylor.expand(f, P, 1).terms(P, None)": "fails on x of shape the type NoneType",
    "kernels.empirical_ntk(lambda p, x: x @ p > 0, jnp.ones(3), X)": "dtype bool",
    "kernels.empirical_ntk(f, P, X).dense(X[:, :2])": "fails on x of shape (8, 2)",
    "kernels.empirical_ntk(f, P, holed)": "The inputs hold 1 entry",
    "kernels.empirical_ntk(f, P, 'text')": "no arrays of numbers",
    "kernels.empirical_conjugate(lambda p, x: x @ p['w'], P, holed)": "The inputs hold 1 entry",
    # orders
    "taylor.expand(f, P, 1.5)": "order=1.5",
    "taylor.expand(f, P, '2')": "order='2'",
    "taylor.expand(f, P, True)": "order=True",
    "taylor.expand(relu, relu.origin, 2)": "relu has derivatives up to order 1",
    "bai_lee.CleanRisk.of(relu, X, y)": "relu has derivatives up to order 1",
    "measure_regime(relu, relu.origin, W, X, order=2)": "relu has derivatives up to order 1",
    "bai_lee.pair_terms(net, W, X, 4)": "relu3 has derivatives up to order 3",
    # two-layer networks
    "symmetric(dim=3, width=7, key=key)": "width=7 is odd",
    "symmetric(dim=3, width=8.0, key=key)": "whole numbers",
    "symmetric(dim=3, width=8, radius=inf, key=key)": "radius=inf",
    "symmetric(dim=3, width=8, key=0)": "jax.random.key(0)",
    "net(column, X)": "W has shape (3, 1): expected (3, 8)",
    "net(W, X[:, :2])": "X has shape (8, 2): expected (n, 3)",
    "taylor.expand(net, net.origin, 2).terms(W, X[0])": "X has shape (3,): expected (n, 3)",
    "taylor.expand(net, net.origin, 2).on(X)(column)": "W has shape (3, 1)",
    # Theorem 7 and Section 6
    "bai_lee.RidgePower(np.ones(3), 5)": "Theorem 7 covers p = 2, 3, 4, 6, 8",
    "bai_lee.RidgePower(np.ones(3), 2.5)": "power=2.5",
    "bai_lee.express(net, ['x^4'])": "a target is a str",
    "bai_lee.express(f, star)": "net is a function",
    "bai_lee.quadratic_part(net, column, X)": "W has shape (3, 1)",
    "bai_lee.quadratic_part(net, spoilt, X)": "NaN or infinite",
    "bai_lee.quadratic_part(net, W, X[:, :2])": "dimension 3",
    "bai_lee.column_norm(spoilt)": "matrix (d, m) of finite numbers",
    "law.difference(-1)": "j=-1",
    "bai_lee.ridge_columns(net, np.array([nan, 1, 1]), 2)": "NaN or infinite",
    "bai_lee.pair_terms(net, W[:, :6], X, 2)": "W has shape (3, 6)",
    "bai_lee.pair_terms(net, jnp.ones((3, 10)), X, 2)": "W has shape (3, 10)",
    "bai_lee.term_moments(net, W[:, :4], law, X[:, :2], 2)": "dimension 3",
    "bai_lee.order_limit('tanh', X, np.ones(2), 2)": "β has shape (2,)",
    # quadratic networks
    "networks.QuadraticNet(3, 7)": "width=7 is odd",
    "ge_wang_zhao.memorisation(10, 4, width=9)": "width=9 is odd",
    "networks.PolynomialNet.gaussian(dim=3, features=4, width=10, power=0, key=key)": "power=0",
    "networks.PolynomialNet.gaussian(dim=3, features=4, width=10, power=1.5, key=key)": "power=1.5",
    "ge_wang_zhao.smallest_singular(np.array([[1.0, 2.0], [0.0, 1.0], [2.0, 4.0]]))": "Rows 0 and 2 of X",
    "ge_wang_zhao.leave_one_out_distances(np.array([[1.0, 2.0], [-2.0, -4.0]]))": "Rows 0 and 1 of X",
    "ge_wang_zhao.interpolant(networks.QuadraticNet(2, 6), [[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0])": "Rows 0 and 1 of X",
    "ge_wang_zhao.interpolant(networks.QuadraticNet(3, 8), X, y)": "give 6 at most",
    "ge_wang_zhao.interpolant(net, X, y)": "net is a TwoLayer: expected a networks.QuadraticNet",
    "theory.QuadraticRisk.of(net, X, y)": "net is a TwoLayer: expected a networks.QuadraticNet",
    "warned(lambda: theory.QuadraticRisk.of(networks.QuadraticNet(3, 8), X, y))": "8 samples are more than the 6",
    "warned(lambda: train(training.HalfSquares(networks.QuadraticNet(3, 8)), params=W))": "more than the 6 to which",
    "warned(lambda: theory.QuadraticRisk.of(polynomials, X, y))": "the 6 that polynomials of degree 2p = 2 in 3 inputs",
    "warned(lambda: train(training.HalfSquares(polynomials), params=polynomials.origin))": "more than the 6 to which",
    # signs
    "bai_lee.flip(W, jnp.ones(7))": "one sign for each column",
    "bai_lee.flip(W, jnp.ones(1))": "one sign for each column",
    "bai_lee.flip(W, jnp.zeros(8))": "other than −1 and 1",
    "bai_lee.flip(W, jnp.eye(8))": "np.diag(Sigma)",
    "bai_lee.random_signs(0, 4, key=key)": "width=0",
    "bai_lee.sign_identities(net, W[:, :4], X)": "W has shape (3, 4)",
    "bai_lee.sign_identities(net, spoilt, X)": "NaN or infinite",
    "bai_lee.sign_identities(f, W, X)": "net is a function",
    # losses, labels, strengths
    "theory.RandomisedRisk.of(net, X, (y + 1) / 2)": "np.where(y == 1, 1.0, -1.0)",
    "bai_lee.CleanRisk.of(net, X, np.arange(8.0), special.losses.soft_hinge)": "y has 0, 1, 2, 3, 4, …",
    "bai_lee.empirical_risk(net, W, X, jnp.zeros(8))": "labels −1 and 1",
    "train(training.MeanLoss(net), y=(y + 1) / 2)": "labels −1 and 1",
    "bai_lee.CleanRisk.of(net, X, y, 'logistic')": "loss is the text 'logistic'",
    "bai_lee.CleanRisk.of(net, X, y, lambda y, z: y * z)": "special.Loss('mine', function)",
    "bai_lee.CleanRisk.of(net, X, y, summed)": "summed is not elementwise",
    "train(training.MeanLoss(net, 'logistic'))": "loss is the text 'logistic'",
    "bai_lee.loss_contract('logistic')": "loss is the text 'logistic'",
    "bai_lee.stationary_bound(theory.RandomisedRisk.of(net, X, y, squared), W, W, gamma=1.0, epsilon=0.1)": (
        "squared is outside Theorem 4"
    ),
    "bai_lee.CleanRisk.of(net, X, y, strength=-1.0)": "strength=-1.0",
    "bai_lee.CleanRisk.of(net, X, y, strength='1')": "strength='1'",
    "theory.RandomisedRisk.of(net, holed, y)": "row 2, column 1",
    "risk(column)": "W has shape (3, 1)",
    "risk.estimate(column)": "W has shape (3, 1)",
    "risk.estimate(spoilt)": "NaN or infinite",
    "clean(W[:, :4])": "W has shape (3, 4)",
    "bai_lee.population_risk(net, W, X)": "expected a function source(n, key=key)",
    # landscape and certificates
    "bai_lee.clean_landscape(risk, W, W)": "expected a CleanRisk",
    "bai_lee.randomised_landscape(risk, spoilt, W)": "NaN or infinite",
    "bai_lee.randomised_landscape(risk, W, W[:, :4])": "W_star has shape (3, 4)",
    "bai_lee.penalty(jnp.ones(3))": "matrix (d, m)",
    "bai_lee.penalty_hessian(W, W[:, :4])": "V (3, 4)",
    "bai_lee.penalty_landscape(W, W[:, :4])": "W_star (3, 4)",
    "taylor.certificate(risk, W[:, :4], key=key)": "W has shape (3, 4)",
    "taylor.certificate(lambda w: w**2, jnp.ones(3), key=key)": "loss(params) has shape (3,)",
    "taylor.certificate(3, W, key=key)": "loss is an int",
    "taylor.certificate(risk, W, key=0)": "is an int. Give key=jax.random.key(0)",
    # residual networks and their targets
    "azl.concept_complexity(parity)": "F is a Parities: expected data.hierarchy.SmoothRidges or GeneralRidges",
    "azl.existence_norm(smooth)": "SmoothRidges(...).general()",
    "azl.existence_weights(smooth, resnet.A, resnet.W0, scale=1.0)": "SmoothRidges(...).general()",
    "azl.existence_norm(parity)": "F is a Parities",
    "hierarchy.SmoothRidges([[1.0]], [[[1.0, 0.0]]], [[[0.0, 1.0]]])": "expected 0.7071",
    "hierarchy.SmoothRidges([[1.0]], [[1.0, 0.0]], [[0.0, 1.0]])": "expected k × p, k × p × orders",
    "hierarchy.SmoothRidges.scaled([[1.0]], [[1.0, 0.0]], [[0.0, 1.0]])": "expected k × p, k × p × orders",
    "hierarchy.GeneralRidges([[1.0]], [[[2.0]]], [[[1.0]]], [[[1.0]]])": "first have norms from 2 to 2",
    "hierarchy.GeneralRidges('a', [[[1.0]]], [[[1.0]]], [[[1.0]]])": "weights has dtype",
    "hierarchy.SmoothRidges.random(3, outputs=2, terms=1, series=['a'], key=key)": "series has dtype",
    "hierarchy.Parities(3, (), np.ones(0))(X)": "subsets is empty",
    "azl.IndicatorFunction([0.0, 0.0, 1.0])": "even orders",
    "azl.IndicatorFunction([[0.0, 1.0]])": "expected finite coefficients",
    "azl.series_complexity([0.0, nan], epsilon=0.1)": "expected finite coefficients",
    "azl.series_smoothness('sine')": "series has dtype",
    "size.bound(nan)": "radius=nan: it is a length, finite and at least 0",
    "size.bound(-1.0)": "radius=-1",
    "azl.composite_bound(size, -3.0)": "base_bound=-3: it is a length",
    "azl.composite_bound(size, inf)": "base_bound=inf",
    "azl.low_norm_parity(5, (0.0, 1.0), 8)": "coordinates=(0.0, 1.0): expected different coordinates, whole numbers",
    "azl.padded_copies(np.full((2, 4), nan), 5, (0, 1))": "The weights hold 8 entries that are NaN or infinite",
    "azl.padded_copies(np.ones((2, 4)), 5, (0.0, 1.0))": "whole numbers from 0 to 4",
    "azl.sign_changes(resnet, resnet.origin, X[:, :2])": "X has shape (8, 2): expected (n, 3)",
    "azl.most_flips([nan, 1.0], 1.0)": "g has entries that are NaN",
    "azl.worst_output(np.ones((2, 3)), np.ones(4), 1.0)": "Shapes A (2, 3), g (4,): expected g",
    "azl.worst_output(np.ones(3), np.ones(3), 1.0)": "expected A to be a matrix",
    "azl.worst_change(np.ones((2, 3)), np.ones(2), np.ones(3), 1.0)": "expected values to be a vector",
    "azl.worst_operator(np.ones((2, 3)), np.ones((3, 3)), np.ones(2), 1.0)": "z has 2 entries and V0 3 rows",
    "azl.worst_relu(np.ones((2, 3)), np.ones((3, 1)), 1.0)": "expected g to be a vector",
    "azl.theorem1(ridges, smooth, alpha=0.1, width=99, base_bound=1.0)": "F is given as a GeneralRidges: expected",
    "azl.theorem1(size, smooth, alpha=0.1, width=99, base_bound=1.0)": "concept_complexity(G, constant=2)",
    "azl.existence_weights(ridges, resnet.A.at[0, 0].set(nan), resnet.W0, scale=1.0)": "A has entries that are NaN",
    "azl.existence_weights(ridges, resnet.A, resnet.W0.at[0, 0].set(inf), scale=1.0)": "W0 has entries that are NaN",
    "azl.existence_weights(ridges, resnet.A, resnet.W0[0], scale=1.0)": "W0 (20,)",
    "azl.existence_hidden(resnet, others, others, **exist)": "W0 (4, 20): base has 2 outputs and 2 inputs",
    "azl.existence_hidden(resnet, ridges, ridges, **exist)": "V0 (3, 20): composite has 2 outputs and 3 inputs",
    "azl.existence_hidden(resnet, ridges, others, **exist | {'alpha': '1'})": "alpha='1' is a str",
    "azl.existence_hidden(resnet, ridges, others, **exist | {'sigma_w': '1'})": "sigma_w='1' is a str",
    "azl.sign_changes(resnet, jax.tree.map(lambda leaf: nan * leaf, resnet.origin), X)": "The parameters hold 80",
    "azl.sign_changes(resnet, resnet.origin, holed)": "The inputs hold 1 entry",
    "hierarchy.Parities(3, ((0.5, 1),), np.ones(1))": "subset (0.5, 1): expected different coordinates, whole",
    "hierarchy.Parities(3, (('0', 1),), np.ones(1))": "whole numbers from 0 to 2",
    "hierarchy.polarised_hierarchy(3, (0, 1.5), alpha=0.1)": "whole numbers from 0 to 2",
    # kernels on the cube
    "azl.product_risk(table, cube, np.full((2, 2), nan), (0, 1), 0.5)": "beta has entries that are NaN",
    "azl.product_risk(table, cube, ['a'], (0, 1), 0.5)": "beta has dtype",
    "azl.memorising_bound(nan, 60, 4, 0.1)": "labels=nan: ‖y‖²",
    "azl.memorising_bound(-1.0, 60, 4, 0.1)": "labels=-1",
    "azl.memorise(wide, y[:2], 500)": "C(d, k) below 1e308, or krawtchouk(500, t, dim=2000)",
    "azl.memorise_on_top(cube, y[:2], 2, np.full(3, nan))": "3 of the 3 coefficients are NaN",
    "azl.memorise_on_top(cube, y[:2], 2, np.ones((3, 1)))": "coefficients of shape (3, 1): expected (3,)",
    "azl.memorise_on_top(cube, y[:2], 2, np.ones(4))": "coefficients of shape (4,): expected (3,)",
    "azl.memorise_on_top(cube, y[:2], 2, 'abc')": "coefficients has dtype",
    # text for a number
    "azl.theorem1(size, size, alpha='0.1', width=99, base_bound=1.0)": "alpha='0.1' is a str: expected one",
    "azl.theorem1(size, size, alpha=0.1, width=99, base_bound='1')": "base_bound='1' is a str",
    "azl.resnet_settings(tau_w='2', tau_v=0.5, outputs=2, width=99, delta=0.5)": "tau_w='2' is a str",
    "azl.resnet_settings(tau_w=2.0, tau_v=0.5, outputs=2, width=99, delta=0.5, sigma_w='1')": "sigma_w='1' is a str",
    "azl.theorem2(60, 4, 12, '0.3')": "alpha='0.3' is a str: expected one real number. Turn text into",
    "azl.theorem2(60, 4, 12, None)": "alpha=None is a NoneType: expected one real number.",
    "azl.theorem2(60, 4, 12, [0.3])": "alpha=[0.3] is a list",
    "azl.theorem2(60, 4, 12, np.ones((2, 3)))": "alpha has shape (2, 3): expected one real number",
    "azl.theorem2(60, 4, 12, 0.3j)": "alpha=0.3j is a complex",
    "azl.needed_norm('0.5', 0.1)": "alpha='0.5' is a str",
    "azl.needed_norm(0.5, '0.1')": "coefficient='0.1' is a str",
    "azl.needed_norm(0.5, 0.1, error='0')": "error='0' is a str",
    "azl.error_floor(0.5, 0.1, '2')": "norm='2' is a str",
    "azl.memorising_bound(1.0, 60, 4, '0.1')": "coefficient='0.1' is a str",
    "hierarchy.parity_hierarchy(alpha='0.3')": "alpha='0.3' is a str",
    "hierarchy.parity_hierarchy(beta='0.3')": "beta='0.3' is a str",
    "networks.ResNet.theory(dim=3, outputs=2, width=20, sigma_v='2', key=key)": "sigma_v='2' is a str",
    "symmetric(dim=3, width=8, radius='1', key=key)": "radius='1' is a str",
    "kernels.coordinates.correlation_regression('gaussian', cube, y[:2, None], strength='1')": "strength='1' is a str",
    "train(training.HalfSquares(net), X=holed)": "X is NaN or infinite in 1 of its 8 rows, first in row 2",
    "train(training.HalfSquares(net), y=np.append(y[:-1], inf))": "y is NaN or infinite in 1 of its 8 rows, first in",
    "training.search(lambda r, d: {'e': np.zeros((1, 1))}, (0.1, 1.0), (0.1, 1.0), by='e')": "shape (1, 1) for 2 rates",
    "special.boolean.character((0, 1), cube[0])": "X has shape (3,): expected rows, the corners of a cube",
    "special.boolean.character((0, 1), np.where(cube < 0, nan, cube))": "X is NaN or infinite in 1 of its entries",
    "hierarchy.Hierarchy(smooth, ridges, 0.1)": "F has 2 outputs and G takes 3 inputs",
    "training.two_rates.residual_sgd('0.1', 0.1)": "rate_w='0.1' is a str",
    "training.randomised.randomised_sgd('0.1', noise=0.0, key=key)": "rate='0.1' is a str",
    "training.grids.grid_sgd(np.ones(2), np.ones(2), momentum='0.9')": "momentum='0.9' is a str",
    # training
    "training.grids.grid_sgd([0.1, 0.2], [0.0, 0.0])": "rates is a list and decays is a list: expected arrays",
    "training.grids.grid_sgd(np.array([0.1, 0.2]), [0.0, 0.0])": "A list of decays is read as a structure",
    "training.grids.grid_sgd(0.1, 0.0)": "rates is a float and decays is a float",
    "training.randomised.randomised_sgd(0.1, noise=-1.0, key=key)": "noise=-1",
    "training.randomised.randomised_sgd(0.1, noise=inf, key=key)": "noise=inf",
    "training.randomised.randomised_sgd(0.1, noise=0.0, strength=inf, key=key)": "strength=inf",
    "training.randomised.randomised_sgd(nan, noise=0.0, key=key)": "rate=nan",
    "training.randomised.randomised_sgd(0.1, noise=0.0, key=0)": "jax.random.key(0)",
    "training.randomised.fresh_signs(3, key=key)": "optax.sgd(0.1)",
    "train(training.MeanLoss(net), params=column)": "W has shape (3, 1)",
    "train(training.MeanLoss(net), params=spoilt)": "before the first step",
    "train(training.MeanLoss(net), steps=1.5)": "steps=1.5",
    "taylor.sharpness(lambda w: w**2, jnp.ones(3), key=key)": "expected one number",
    "taylor.sharpness(lambda w: jnp.sum(w), jnp.arange(3), key=key)": "nothing to move",
    # of a file
    "data.load(3)": "path is an int: expected the path of a file",
    "data.load(('a.npy',))": "A tuple of 1 paths: expected two",
    "data.load(table_file, labels=1.5)": "labels=1.5 is a float: expected a column's name or position",
    "data.load(table_file, labels=True)": "labels=True is a bool",
    "data.load(table_file, limit=0)": "limit=0",
    # samples, labels and classes
    "data.sphere(3, 3, radius='1', key=key)": "radius='1' is a str",
    "data.distributions.gaussian(10**12, 10**6, key=key)": "more than any memory holds",
    "data.distributions.noisy_xor(3, '4', key=key)": "dim='4'",
    "data.distributions.smooth_inputs(X, '1', key=key)": "noise='1' is a str",
    "data.distributions.smooth_inputs(X, 1e308, key=key)": "leads beyond float64",
    "data.labels.add_label_noise([[1], [-1, 1]], 0.1, key=key)": "y is no array",
    "data.labels.two_classes(X, y, 3)": "classes=3: expected two different classes",
    "data.labels.two_classes(X, y, ('a', 'b'))": "a class='a' is a str",
    "data.digits(classes=3)": "classes=3: expected different whole numbers",
    "data.digits(classes=([0], [1]))": "expected different whole numbers",
    "data.mnist(folder=3)": "folder is an int: expected the path of a folder",
    "labels.analysis.analyse(X, y, classes=['a', 'b'])": "classes names labels 0, 1, …, and y has -1 and 1",
    "labels.analysis.analyse(X, (y + 1) / 4, classes=['a', 'b'])": "and y has 0 and 0.5",
    "labels.analysis.analyse(X, (y + 1) / 2, classes=['a', 'a'])": "two equal names",
    "labels.analysis.analyse(X, (y + 1) / 2, classes=3)": "classes is an int",
    "labels.analysis.analyse(X, y, kernel='relu')": "kernel='relu': expected one of",
    "labels.analysis.analyse(X, y, ridge='1')": "ridge='1' is a str",
    "labels.analysis.analyse(X, y, ridge=1e308)": "ridge=1e+308 leaves nothing of a kernel",
    "labels.analysis.analyse(X, y, rows_at_once='20')": "rows_at_once='20'",
    "labels.advise(long, 1e200 * signs, width=10)": "The largest label is 1e+200",
    "labels.advise(long, 1e-200 * signs, width=10)": "The largest label is 1e-200",
    # kernels and ridges
    "kernels.Gram(kernels.relu_hidden, X, budget='1')": "budget='1' is a str",
    "kernels.Gram(kernels.relu_hidden, X).solve(['a'] * 8)": "b has dtype",
    "kernels.Gram(kernels.relu_hidden, X).solve(y, tolerance='x')": "tolerance='x' is a str",
    "kernels.Gram(kernels.relu_hidden, X).eigh(2.5)": "k=2.5",
    "kernels.relu_hidden.exact(X, X[:, :2])": "X1 has 3 columns and X2 2",
    "kernels.gaussian('1')": "is a str",
    "kernels.closed_forms.erf_output(weight=None)": "weight=None is a NoneType",
    "kernels.deep(2.5)": "depth=2.5: it must be a whole number",
    "kernels.ridge_regression(kernels.relu_hidden, X, y, ridge='x')": "ridge='x' is a str",
    "kernels.regression.ridge_path(3, y)": "spectrum is an int",
    "kernels.regression.ridge_path(kernels.Gram(kernels.relu_hidden, X).eigh(), y, [inf])": "positive and finite",
    "kernels.regression.ridge_path(kernels.Gram(kernels.relu_hidden, X).eigh(), y, 0.1)": "expected a list",
    "kernels.regression.ridge_path(kernels.Gram(kernels.relu_hidden, X).eigh(), y, [])": "expected a list",
    "kernels.regression.ridge_path(kernels.Gram(kernels.relu_hidden, X).eigh(), y, ['a'])": "ridges has dtype",
    "kernels.regression.ridge_for_norm(kernels.Gram(kernels.relu_hidden, X).eigh(), y, '1')": "norm='1' is a str",
    "kernels.ridges.regularised('relu_hidden', X, y)": "kernel is a str",
    "kernels.ridges.regularised(kernels.relu_hidden, X, y, ['a'])": "ridges has dtype",
    "kernels.finite.tangent_gram(net, column, X)": "W has shape (3, 1) and X (8, 3): expected (3, 8) and (n, 3)",
    "kernels.finite.tangent_gram(net, W, X[:, :2])": "expected (3, 8) and (n, 3)",
    "kernels.finite.tangent_gram(3, W, X)": "net is an int",
    "theory.predict_residual(kernels.Gram(kernels.relu_hidden, X).eigh(), y, rate='x', steps=np.arange(3))": "rate='x'",
    "theory.predict_residual(kernels.Gram(kernels.relu_hidden, X).eigh(), y, rate=0.1, steps=[0.5])": "whole numbers",
    "theory.largest_stable_rate(3)": "spectrum is an int",
    "theory.complexity('1', 3)": "quadratic='1' is a str",
    # Taylor series and regimes
    "taylor.expand(f, P, 1).terms(moved, holed)": "The inputs hold 1 entry",
    "taylor.expand(f, P, 1).terms(jax.tree.map(lambda leaf: nan * leaf, P), X)": "The parameters hold",
    "measure_regime(f, P, moved, X[:0])": "X has no samples",
    "measure_regime(f, P, moved, X, held_out=X)": "held_out=(X_test, y_test)",
    # the arguments of train
    "train(training.HalfSquares(net), batch='3', key=key)": "batch='3'",
    "train(training.HalfSquares(net), batch=3, key=0)": "key must be one JAX key",
    "train(training.HalfSquares(net), X=None)": "X has dtype object",
    "train(training.HalfSquares(net), X=3)": "X is of shape ()",
    "train(training.HalfSquares(net), X=X[:0], y=y[:0])": "X is of shape (0, 3)",
    "train(training.HalfSquares(net), X=X + 1j)": "X has dtype complex",
    "train(training.HalfSquares(net), X=jnp.asarray(X) + 1j)": "dtype complex64",
    "train(training.HalfSquares(net), y=['a'] * 8)": "y has dtype",
    "train(training.HalfSquares(net), params={})": "params holds no arrays",
    "train(training.HalfSquares(net), params='abc')": "params holds no arrays",
    "train(training.HalfSquares(net), params=np.ones((3, 8), int))": "params holds whole numbers",
    "train(training.HalfSquares(net), record=3, record_at=np.array([0]))": "record is an int",
    "train(training.HalfSquares(net), record={'a': 3}, record_at=np.array([0]))": "record['a'] is an int",
    "train(training.HalfSquares(net), record={'a': jnp.sum}, record_at=[0.5])": "record_at=[0.5]",
    "train(training.HalfSquares(net), checkpoint='x')": "checkpoint is a str",
    "train(lambda p, x, y: 'abc')": "it gave a str, and not a number",
}

# wrong numbers once, in silence, or an error of Python's own
ODD = {
    "arora.ramp_loss(np.ones(3), np.ones((3, 1)))": "u has shape (3,) and y (3, 1)",
    "arora.zero_one_loss(np.array([100, 1], 'int8'), np.ones(2))": "u has dtype int8, whose products wrap around",
    "arora.Features.of(net, X, np.ones((3, 1)))": "W has shape (3, 1): expected (3, 8)",
    "arora.flip_counts(np.ones((3, 8)), np.ones((3, 1)), X)": "Shapes W0 (3, 8), W (3, 1), X (8, 3)",
    "arora.linearised_outputs(gram, y, rate=0.1, steps=5)": "steps=5: expected a vector of whole numbers",
    "arora.linearised_distance(gram, y, rate=0.1, steps=5)": "steps=5: expected a vector of whole numbers",
    "arora.linearised_weights(arora.Features.of(net, X), y, rate=0.01, steps=1.5)": "whole numbers of gradient steps",
    "arora.Target.power(np.ones(3), 1.5)": "power=1.5: it must be a whole number",
    "arora.tensor_powers(X, 2.0)": "power=2.0: it must be a whole number",
    "bai_lee.penalty(np.full((2, 3), 1000))": "W holds whole numbers, whose products wrap around",
    "bai_lee.penalty_hessian(np.full((2, 3), 1000), np.ones((2, 3)))": "W holds whole numbers",
    "azl.coupling(resnet, resnet.origin, holed)": "The inputs hold 1 entry that is NaN",
    "azl.gradient_parts(resnet, resnet.origin, holed, resnet.origin)": "The inputs hold 1 entry that is NaN",
    "azl.sign_patterns(resnet, resnet.origin, holed)": "The inputs hold 1 entry that is NaN",
    "azl.sign_changes(broken, resnet.origin, X)": "The network's weights hold 80 entries that are NaN",
    "azl.gradient_parts(resnet, resnet.origin, X, unlike)": "The displacements have shapes [(4, 1), (3, 1)]",
    "azl.descent_parts(resnet, resnet.origin, X, jnp.ones((8, 2)), unlike)": "shapes [(4, 1), (3, 1)]",
    "azl.output_limit(1.0, 1.0, 2.5)": "width=2.5: it must be a whole number",
    "azl.operator_limit(1.0, 1.0, 2.5)": "width=2.5: it must be a whole number",
    "azl.indicator_mean(azl.IndicatorFunction([0.0, 1.0]), 0.5)": "cosines has shape (): expected a vector",
    "azl.flip_fraction('0.1')": "delta='0.1' is a str",
    "networks.QuadraticNet(2, 2)(jnp.full((2, 2), 70000), jnp.ones((1, 2), int))": "W and X hold whole numbers",
    "networks.PolynomialNet(jnp.ones((2, 3), int), 3, networks.QuadraticNet(2, 2)).features(jnp.ones((1, 3), int))": (
        "R and X hold whole numbers"
    ),
    "kernels.relu_hidden(jnp.ones((2, 3)), jnp.ones((2, 1)))": "X1 has shape (2, 3) and X2 (2, 1)",
    "special.activations.erf(jnp.arange(3))": "z holds whole numbers",
    "special.losses.squared(np.ones(3), np.ones(2))": "y has shape (3,) and z (2,): they do not broadcast",
    "special.boolean.cube_values(np.array([nan, 1.0]))": "squares has entries that are NaN",
    "nichani.feature_blocks(np.ones((3, 1)), net, 1, trace=1.0)": "values has shape (3, 1)",
}

# what the types would refuse too, and the functions take as it is meant
TAKEN = {
    "np.allclose(arcsine(*2 * [jnp.asarray(cube, int)]), arcsine.exact(cube), rtol=1e-6)": "True",
    "np.allclose(arcsine(*2 * [cube.astype(int)]), arcsine.exact(cube), rtol=1e-6)": "True",
    "np.array_equal(arcsine.exact(cube.astype(int)), arcsine.exact(cube))": "True",
    "np.array_equal(arcsine.diag(cube.astype(int)), np.diagonal(arcsine.exact(cube)))": "True",
    "np.allclose(arcsine.diag(jnp.asarray(cube, int)), np.diagonal(arcsine.exact(cube)), rtol=1e-6)": "True",
}


@pytest.fixture(scope="module")
def said():
    calls = json.dumps([*CASES, *ODD, *TAKEN])
    done = subprocess.run([sys.executable, "-c", SETUP], input=calls, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("call", [*CASES, *ODD])
def test_it_is_refused_with_what_was_given_or_expected(said, call):
    kind, message = said[call]
    assert kind == "InputError", message
    assert (CASES | ODD)[call] in message


@pytest.mark.parametrize("call", TAKEN)
def test_lists_and_whole_numbers_are_taken_for_what_they_mean(said, call):
    assert said[call] == ["a result", TAKEN[call]]
