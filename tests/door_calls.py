"""A valid call of each function behind which no other door lies, in the rooms that `tests/test_doors.py` walks.

Name → a kind for each parameter (`tests/door_kinds.py`). What a parameter takes although others of its kind do not is
left out with `but`.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from door_kinds import (
    Arg,
    array,
    choice,
    count,
    flag,
    function,
    key,
    not_negative,
    number,
    path,
    positive,
    thing,
    tree,
)
from offtangent import estimators, labels, networks, special, training
from offtangent.data import hierarchy
from offtangent.regime import Training, measure_regime
from offtangent.regime.course import follow
from offtangent.theory.ge_wang_zhao.descent import DescentSettings

KEY = jax.random.key(0)

Words = dict[str, Arg]


def words(**given: Arg) -> Words:
    """The parameters of one function."""
    return given


def images(folder: Path) -> Path:
    """MNIST and CIFAR-10 of thirty images each."""
    rng = np.random.default_rng(0)
    digits = np.tile(np.arange(10, dtype=np.uint8), 3)
    pixels = rng.integers(0, 256, (30, 784), np.uint8)
    for split in ("train", "t10k"):
        target = folder / "mnist" / f"{split}-images-idx3-ubyte"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(bytes([0, 0, 8, 3]) + np.array([30, 28, 28], ">u4").tobytes() + pixels.tobytes())
        labels_file = folder / "mnist" / f"{split}-labels-idx1-ubyte"
        labels_file.write_bytes(bytes([0, 0, 8, 1]) + np.array([30], ">u4").tobytes() + digits.tobytes())
    batches = folder / "cifar10" / "cifar-10-batches-bin"
    batches.mkdir(parents=True)
    records = np.hstack([digits[:, None], rng.integers(0, 256, (30, 3072), np.uint8)])
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        (batches / name).write_bytes(records.tobytes())
    return folder


def of_data(folder: Path) -> dict[str, Words]:
    X, y = np.random.default_rng(0).standard_normal((6, 3)), np.tile([-1.0, 1.0], 3)
    table = folder / "table.csv"
    table.write_text("a,b,c\n1,2,0\n3,4,1\n5,6,1\n")
    where, one = path(images(folder)).or_none, np.ones((1, 1))
    classes = Arg((0, 1), {"an int": 3, "none": None, "equal": (1, 1), "text": "ab", "empty": (), "nan": (0, np.nan)})
    how = choice("centred").saying("preprocess")
    pictures = words(classes=classes.or_none, samples=count(3).or_none, preprocess=how, unit=flag(True))
    files = pictures | words(split=choice("test"), folder=where, download=flag(False))
    series = array(np.array([0.0, 1.0]))
    drawn = words(dim=count(3), outputs=count(2), terms=count(1), series=series, key=key())
    unit, half = np.eye(1, 3)[None], np.sqrt(0.5) * np.eye(1, 3)[None]
    ridge_parts = words(weights=array(one), series=array(one[None]))
    smooth = hierarchy.SmoothRidges.random(3, outputs=2, terms=1, series=[0.0, 1.0], key=KEY)
    parities = hierarchy.Parities(2, ((0, 1),), np.ones(1))
    energies = array(np.full(2, 0.5)).saying("low_energies").or_none
    return {
        "data.catalogue.data_folder": words(folder=path(folder).or_none),
        "data.distributions.sphere": words(n=count(4), dim=count(3), radius=positive(1.0), key=key()),
        "data.distributions.hypercube": words(n=count(4), dim=count(3), key=key()),
        "data.distributions.noisy_xor": words(n=count(4), dim=count(3, least=2), key=key()),
        "data.distributions.gaussian": words(n=count(4), dim=count(3), key=key()),
        "data.distributions.smooth_inputs": words(X=array(X), noise=not_negative(0.1), key=key()),
        "data.duplicates.merge_duplicates": words(X=array(X), y=array(y), average=flag(True)),
        "data.fetch.available": words(name=choice("mnist").saying("data set"), folder=where),
        "data.fetch.checksum": words(name=choice("mnist").saying("data set"), folder=where),
        "data.fetch.download": words(
            name=choice("mnist").saying("data set").also(bundled="digits").saying("digits|data set"),
            folder=where,
            progress=function(print).or_none,
        ),
        "data.files.load": words(
            path=path(table).also(absent=folder / "no.csv", empty="", folder=folder).saying("path|file"),
            labels=Arg("c", {"nan": np.nan, "list": ["c"], "another": "d", "beyond": 3}, "labels|column"),
            limit=count(10),
        ),
        "data.hierarchy.SmoothRidges": ridge_parts | words(directions=array(half)),
        "data.hierarchy.SmoothRidges.scaled": ridge_parts | words(directions=array(unit)),
        "data.hierarchy.SmoothRidges.random": drawn,
        "data.hierarchy.GeneralRidges": ridge_parts
        | words(first=array(unit).saying("first|directions"), second=array(unit).saying("second|directions")),
        "data.hierarchy.GeneralRidges.random": drawn,
        "data.hierarchy.Parities": words(
            dim=count(3),
            subsets=Arg(
                ((0, 1), (2,)),
                {"empty": (), "beyond": ((3,), (0,)), "flat": (0, 1), "an int": 3, "none": None},
                "subsets?",
            ),
            signs=array(np.ones(2)).but("ragged").also(halves=np.full(2, 0.5), ragged=[[1.0], [1.0, 1.0]]),
        ),
        "data.hierarchy.Hierarchy": words(
            base=function(smooth), composite=function(parities), alpha=not_negative(0.3), beta=not_negative(1.0)
        ),
        "data.hierarchy.parity_hierarchy": words(alpha=not_negative(0.3), beta=not_negative(1.0), later=flag(False)),
        "data.hierarchy.polarised_hierarchy": words(
            dim=count(4),
            coordinates=Arg((0, 2), {"beyond": (0, 4), "equal": (1, 1), "empty": (), "an int": 3, "nan": (np.nan,)}),
            alpha=not_negative(0.5),
        ),
        "data.images.digits": pictures,
        "data.images.mnist": files,
        "data.images.cifar10": files,
        "data.labels.two_classes": words(
            X=array(X), labels=array(y).saying("y"), classes=classes._replace(good=(1, -1)).saying("class|classes")
        ),
        "data.labels.random_labels": words(n=count(4), key=key()),
        "data.labels.add_label_noise": words(y=array(y), fraction=number(0.5, beyond=1.5, below=-0.1), key=key()),
        "data.labels.flip_labels": words(y=array(y), fraction=number(0.5, beyond=1.5, below=-0.1), key=key()),
        "data.preprocessing.fit_preprocessing": words(X=array(X), how=how, unit=flag(True), bias=flag(True)),
        "data.preprocessing.preprocess": words(X=array(X), how=how, unit=flag(True), bias=flag(True)),
        "data.preprocessing.unit_norm": words(X=array(X)),
        "data.targets.LowDegreePlusSparse": words(
            directions=array(np.eye(2, 3)),
            weights=array(np.ones((2, 2))),
            alphas=array(np.ones(1)).also(large=np.full(1, 2.0)),
            betas=array(np.eye(1, 3)),
        ),
        "data.targets.LowDegreePlusSparse.random": words(
            dim=count(4, least=2),
            degree=count(1, least=0),
            rank=count(1, least=0),
            low_energies=energies,
            ridges=count(5).or_none,
            key=key(),
        ),
        "data.targets.sphere_target": words(dim=count(4, least=2), key=key()),
        "data.targets.gaussian_target": words(dim=count(4, least=2), key=key()),
        "data.targets.quadratic_plus_cubic": words(dim=count(4, least=3), normalised=flag(True), key=key()),
    }


def of_linalg() -> dict[str, Words]:
    A = np.diag([3.0, 2.0, 1.0])
    ends = choice("smallest").saying("which")
    return {
        "linalg.spectrum.Spectrum.of": words(
            matrix=array(A).also(oblong=A[:2], lopsided=A + np.eye(3, k=1)),
            k=count(2).also(beyond=4).or_none,
            which=ends,
        ),
        "linalg.brackets.inverse_quadratic": words(
            A=array(A).also(oblong=A[:2], indefinite=-A).saying("A|matrix"), y=array(np.ones(3)).saying("y|right side")
        ),
    }


def of_networks() -> dict[str, Words]:
    sizes = words(dim=count(3), outputs=count(2), width=count(8), key=key())
    halves, activation = count(8, least=1).also(odd=7), choice("tanh").saying("activation|function")
    pair = words(dim=count(3), activation=activation, key=key())
    return {
        "networks.fully_connected.FullyConnected.experiment": sizes | words(layers=count(3, least=2)),
        "networks.quadratic.QuadraticNet": words(dim=count(3), width=halves),
        "networks.quadratic.PolynomialNet": words(
            R=array(np.ones((4, 3))), power=count(2), net=thing(networks.QuadraticNet(4, 8))
        ),
        "networks.quadratic.PolynomialNet.gaussian": words(
            dim=count(3),
            features=count(4).saying("features|dim"),
            width=halves,
            power=count(2),
            scale=positive(1.0),
            key=key(),
        ),
        "networks.quadratic.symmetric_dimension": words(dim=count(3), power=count(2, least=0)),
        "networks.resnet.ResNet.theory": sizes | words(sigma_v=positive(1.0), sigma_w=positive(1.0).or_none),
        "networks.resnet.ResNet.experiment": sizes,
        "networks.resnet.DirectResNet.experiment": sizes,
        "networks.standard.MLP": words(dim=count(3), width=count(8), depth=count(2)),
        "networks.standard.ConvNet": words(
            channels=count(2),
            shape=Arg(
                (4, 4, 1),
                {"two": (4, 4), "odd": (4, 5, 1), "an int": 4, "text": "abc", "none": None, "nan": (4, 4, np.nan)},
                "shape|image",
            ),
            depth=count(1),
        ),
        "networks.two_layer.TwoLayer.gaussian": pair | words(width=count(8), scale=positive(1.0)),
        "networks.two_layer.TwoLayer.symmetric": pair
        | words(width=halves, law=choice("gaussian"), radius=positive(1.0)),
    }


def of_taylor_and_training(folder: Path) -> dict[str, Words]:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4, 3)).astype(np.float32), np.tile(np.float32([-1.0, 1.0]), 2)
    w = jnp.asarray(rng.standard_normal(3), jnp.float32)
    order = count(2, least=0).also(beyond=31)
    f = lambda p, x: jnp.tanh(x @ p)  # noqa: E731
    bowl = lambda p: jnp.sum(jnp.asarray([1.0, 2.0, 3.0]) * p**2)  # noqa: E731
    params, expanded = tree(w).saying("params|parameters"), tree(w).saying("parameters")
    strength = not_negative(0.5).but("list")
    regulariser = function(lambda W: jnp.sum(W**2, axis=(-2, -1)))
    terms = Arg(
        ((regulariser.good, 0.5),),
        {
            "an int": 3,
            "none": None,
            "flat": (regulariser.good, 0.5),
            "negative": ((regulariser.good, -1.0),),
            "nan": ((regulariser.good, np.nan),),
            "no function": ((3, 0.5),),
        },
        "regulariser|strength|terms",
    )
    rates = array(np.array([0.1, 0.2])).but("one axis more", "empty").also(negative=np.array([-0.1, 0.2]))
    settings = DescentSettings(rate=0.05, radius=0.01, gradient=0.01, decrease=0.01, wait=5)
    grid = {
        "one": (0.5,),
        "falling": (0.5, 0.25),
        "nan": (0.25, np.nan),
        "text": "ab",
        "words": ("a", "b"),
        "none": None,
        "an int": 3,
        "negative": (-1.0, 1.0),
        "infinite": (1.0, np.inf),
    }
    evaluate = lambda rates, decays: {"loss": np.log(np.array(rates))[:, None] ** 2 + np.array(decays)}  # noqa: E731
    evaluates = function(evaluate).also(
        no_tables=lambda *_: 3,
        other_shape=lambda *_: {"loss": np.ones(1)},
        words=lambda a, b: {"loss": np.full((len(a), len(b)), "a")},
    )
    half = training.HalfSquares(lambda p, x: x @ p)
    matrix = jnp.ones((2, 4))
    signs = training.randomised.fresh_signs(optax.sgd(0.1), key=KEY)
    rate = positive(0.1)
    return {
        "taylor.expansion.expand": words(f=function(f), params0=expanded, order=order),
        "taylor.expansion.linearise": words(f=function(f), params0=expanded),
        "taylor.curvature.certificate": words(
            loss=function(bowl).also(several=lambda p: p, no_number=lambda _: "abc"),
            params=params,
            key=key(),
            tol=positive(1e-3),
            delta=number(1e-3, zero=0.0, one=1.0),
            most=count(30),
        ),
        "taylor.curvature.sharpness": words(
            objective=function(bowl).also(several=lambda p: p, no_number=lambda _: "abc"),
            params=params.but("nan", "infinite"),  # whose curvature is NaN, as a training that diverged wants to know
            key=key(),
            tol=not_negative(1e-3),
        ),
        "training.directions.add_regulariser": words(
            regulariser=regulariser, strength=strength, key=Arg(None, {"an int": 0, "of no use": KEY})
        ),
        "training.directions.add_perturbation": words(noise=not_negative(0.1), key=key()),
        "training.directions.chain": words(parts=thing(optax.sgd(0.1)).saying("chain")),
        "training.directions.perturbed_descent": words(
            rate=rate, noise=not_negative(0.1), regularisers=terms, key=key()
        ),
        "training.directions.RegularisedLoss": words(
            objective=function(half), terms=terms._replace(good=((regulariser.good, 0.5),))
        ),
        "training.grids.grid_sgd": words(
            rates=rates,
            decays=rates,
            initial=Arg(None, {}),  # any structure, which only the parameters tell
            momentum=number(0.9, one=1.0, negative=-0.1),
            schedule=function(lambda _: 1.0),
        ),
        "training.grids.Bounded": words(objective=function(half), limit=positive(10.0)),
        "training.grids.search": words(
            evaluate=evaluates,
            rates=Arg((0.25, 0.5), grid | {"zero": (0.0, 0.5)}),
            decays=Arg((0.0, 1.0), grid),
            by=choice("loss").but("list").saying("by"),
        ),
        "training.grids.refine": words(
            found=thing(training.search(evaluate, (0.2, 0.8, 3.2), (0.0, 1.0), by="loss")), evaluate=evaluates
        ),
        "training.loop.Checkpoint": words(path=path(folder / "state.npz"), seconds=number(60.0, negative=-1.0)),
        "training.loop.train": words(
            objective=function(half),
            params=tree(w).saying("params|parameters"),
            X=array(X).but("one axis more"),  # images have more axes
            y=array(y).saying("y|labels"),
            optimiser=thing(optax.sgd(0.01)),
            steps=count(3, least=0),
            batch=count(2).also(beyond=5).or_none,
            key=key().but("none").saying("key"),
            record=Arg({"w": jnp.sum}, {"an int": 3, "function": jnp.sum, "no function": {"w": 3}, "none": None}),
            record_at=Arg(
                np.array([0, 3]),
                {
                    "beyond": np.array([4]),
                    "halves": [0.5],
                    "text": "abc",
                    "an int": 3,
                    "nan": [np.nan],
                    "two axes": np.array([[0, 1]]),
                },
            ),
            checkpoint=thing(None).or_none,
            precision=choice("highest").but("none"),
            shuffle=flag(True),
            progress=function(lambda *_: None).or_none,
        ),
        "training.losses.HalfSquares": words(f=function(f)),
        "training.perturbed.algorithm1": words(settings=thing(settings), key=key()),
        "training.perturbed.find_stationary": words(
            loss=function(bowl).also(several=lambda p: p),
            params=params,
            settings=thing(settings),
            most=count(20),
            key=key(),
        ),
        "training.randomised.MeanLoss": words(f=function(f), loss=thing(special.losses.squared)),
        "training.randomised.fresh_signs": words(inner=thing(optax.sgd(0.1)), key=key()),
        "training.randomised.unsigned": words(
            params=tree(matrix).but("nan", "infinite", "whole numbers").saying("params|W"),
            state=thing(signs.init(matrix)),
        ),
        "training.randomised.add_penalty": words(strength=strength),
        "training.randomised.randomised_sgd": words(rate=rate, noise=not_negative(0.1), strength=strength, key=key()),
        "training.two_rates.residual_sgd": words(rate_w=not_negative(0.1), rate_v=not_negative(0.1)),
    }


def of_labels_and_regime() -> dict[str, Words]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    found = labels.analyse(X, y)
    f = lambda p, x: jnp.tanh(x @ p)  # noqa: E731
    single, w = X.astype(np.float32), jnp.asarray(rng.standard_normal(3), jnp.float32)
    regime = measure_regime(f, w, 1.5 * w, single)
    trained = Training(f, [w, 1.5 * w], single, y)
    held_out = Arg((single, y), {"an int": 3, "one": (single,), "few labels": (single, y[:3])})
    held_out = held_out.saying("held_out|held-out")
    labelled = array(y).but("none", "one axis more").saying("y|labels")
    levels, facts = np.array([1.0, 0.5]), Arg({"a": "b"}, {"an int": 3, "text": "abc"})
    below = number(0.0, negative=-1.0, infinite=np.inf)
    settings = words(
        kernel=choice("relu_hidden"),
        ridge=choice("auto").but("an int").also(negative=-1.0, nan=np.nan, infinite=np.inf),
        preprocess=choice("standardised"),
        unit=flag(True),
        bias=flag(True),
    )
    return {
        "labels.advice.advise": words(
            X=array(X),
            y=array(y).also(constant=np.ones(24)).saying("y|labels"),
            width=count(8).also(odd=7),
            activation=choice("softplus").saying("activation|function"),
            degree=count(2, least=0).also(beyond=41).or_none,
            key=key().or_none,
        ),
        "labels.analysis.analyse": words(
            X=array(X),
            y=array(y > 0)
            .but("nan", "infinite", "complex")
            .also(nan=np.where(y > 0, 1, np.nan), constant=np.ones(24))
            .saying("y|labels"),
            task=choice("classification"),
            classes=Arg(["a", "b"], {"an int": 3, "equal": ["a", "a"], "one": ["a"]}),
            preprocess=choice("standardised"),
            unit=flag(True),
            bias=flag(True),
            kernel=choice("relu_hidden"),
            ridge=not_negative(1e-6),
            rows_at_once=count(12, least=10).or_none,
            key=key().or_none,
            watch=function(lambda _: None).or_none,
        ),
        "labels.energies.degree_energies": words(X=array(X), y=array(y), degree=count(2, least=0), key=key().or_none),
        "labels.energies.departure": words(X=array(X), degree=count(2), key=key().or_none),
        "labels.learning_curves.kernel_curve": words(
            values=array(levels).also(negative=-levels).saying("values|[Ee]igenvalues"),
            multiplicities=array(np.array([2.0, 30.0])).also(negative=-levels).saying("multiplicities"),
            energies=array(levels).also(negative=-levels).saying("energies"),
            samples=count(9),
            tail=below,
            ridge=below,
            noise=below,
        ),
        "labels.page.labels_page": words(found=thing(found), name=thing("mine").but("text"), facts=facts),
        "regime.measure.measure_regime": words(
            f=function(f),
            params0=tree(w).saying("parameters"),
            params=tree(1.5 * w).saying("parameters|outputs"),
            X=array(single).but("complex", "words", "ragged", "one axis more").saying("X|x of shape|inputs"),
            y=array(y).but("none", "one axis more").saying("y|labels"),
            order=count(2),
            held_out=held_out,
        ),
        "regime.measure.Start": words(
            f=function(f),
            params0=tree(w).saying("parameters"),
            X=array(single).but("complex", "words", "ragged", "one axis more").saying("X|x of shape|inputs"),
            y=labelled,
            held_out=held_out,
            order=count(2),
            loss=choice("squared").or_none,
            memory=count(10**8).or_none,
        ),
        "regime.training.Training": words(
            f=function(f),
            checkpoints=Arg([w, w], {"an int": 3, "text": "abc", "none": None, "one": [w]}),
            X=Arg(single, {"no axes": 1.0, "empty": single[:0], "none": None}),
            y=Arg(y, {"few": y[:3], "ragged": [[1.0], [1.0, 2.0]]}),
            X_test=Arg(single, {"no axes": 1.0, "empty": single[:0]}),
            y_test=Arg(y, {"few": y[:3]}),
            steps=Arg([0, 1], {"few": [0], "text": "ab", "an int": 3}),
            loss=choice("squared").or_none,
        ),
        "regime.course.follow": words(
            training=thing(trained),
            order=count(2),
            samples=count(9),
            seed=count(0, least=0).saying("seed"),
            memory=count(10**8).or_none,
            kept=Arg(None, {"an int": 3, "text": "abc"}),
            watch=function(lambda _: None),
        ),
        "regime.course_page.course_figures": words(found=thing(follow(trained))),
        "regime.page.regime_page": words(found=thing(regime), name=thing("mine").but("text"), facts=facts),
        "regime.words.answers": words(found=thing(regime)),
        "regime.page.regime_figures": words(found=thing(regime)),
        "estimators.NTKRegressor": settings,
        "estimators.NTKClassifier": settings,
    }


def calls(folder: Path) -> dict[str, Words]:
    """The whole table; a few files are written into the folder."""
    return of_data(folder) | of_linalg() | of_networks() | of_taylor_and_training(folder) | of_labels_and_regime()


def fitted(name: str):
    """An estimator, with `fit`: scikit-learn has its constructors check nothing."""
    X = np.random.default_rng(0).standard_normal((8, 3))
    return lambda **words: getattr(estimators, name)(**words).fit(X, np.where(X[:, 0] > 0, 1.0, -1.0))


INSTEAD = {f"estimators.{name}": fitted(name) for name in ("NTKRegressor", "NTKClassifier")}
