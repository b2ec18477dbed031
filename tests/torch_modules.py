"""PyTorch modules of many kinds in float64, each with an example, for tests that translate them."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

SEED = 0
Case = tuple[nn.Module, torch.Tensor]


class Of(nn.Module):
    """`forward` as a function of the module and its input."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.inner = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.inner(self, x)


class Residual(nn.Module):
    def __init__(self, given, made, stride):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(given, made, 3, stride, 1, bias=False), nn.BatchNorm2d(made)
        self.second, self.norm2 = nn.Conv2d(made, made, 3, 1, 1, bias=False), nn.BatchNorm2d(made)
        self.past = (
            nn.Identity() if stride == 1 else nn.Sequential(nn.Conv2d(given, made, 1, stride), nn.BatchNorm2d(made))
        )

    def forward(self, x):
        inside = torch.relu(self.norm1(self.first(x)))
        return torch.relu(self.norm2(self.second(inside)) + self.past(x))


def last(kind, **words):
    """A recurrent layer, of which the last output counts, with a linear one."""
    layer = kind(4, 3, batch_first=True, **words)
    out = nn.Linear(6 if layer.bidirectional else 3, 2)
    return Of(lambda net, x: net.out(net.layer(x)[0][:, -1]), layer=layer, out=out)


def tied():
    """A language model whose output matrix is its embedding."""
    table = nn.Embedding(7, 4, padding_idx=0)
    out = nn.Linear(4, 7)
    out.weight = table.weight
    return Of(lambda net, x: net.out(torch.tanh(net.table(x)).mean(1)), table=table, out=out)


def shared():
    """One layer used twice, with an activation in place."""
    return Of(lambda net, x: net.one(functional.elu_(net.one(x))), one=nn.Linear(4, 4))


def stopped():
    """What passes a `detach`, and what is computed under `no_grad`, has no gradient."""

    def forward(net, x):
        with torch.no_grad():
            constant = torch.exp(net.one(x))
        return net.two(x).detach() * net.one(x) + constant * net.two(x)

    return Of(forward, one=nn.Linear(4, 3), two=nn.Linear(4, 3))


def in_place():
    """Slices written over, masks filled, rows chosen."""

    def forward(net, x):
        y = net.one(x)
        y[:, 0] = 2.0
        y[:, 1:3].mul_(x[:, 1:3])
        y = y.masked_fill(y > 1.5, 0.25)
        z = torch.zeros(x.shape[0], 5, dtype=x.dtype).scatter(1, torch.arange(4).expand(x.shape[0], 4), y)
        return torch.cat([z[:, [4, 1, 0]], y.clamp(-0.5, 0.5), y.sort(1).values], 1)

    return Of(forward, one=nn.Linear(4, 4))


def decoder():
    layer = nn.TransformerDecoderLayer(4, 2, 6, batch_first=True, activation="gelu")
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    return Of(lambda net, x: net.layer(x, x, tgt_mask=mask, tgt_is_causal=True).flatten(1), layer=layer)


def masked_attention():
    """Causal attention with grouped queries, and a mask that leaves one position nothing to attend to."""

    def forward(net, x):
        q, k, v = net.qkv(x).split([4, 2, 2], -1)
        q, k, v = (one.unflatten(-1, (-1, 2)).transpose(1, 2) for one in (q, k, v))
        seen = torch.ones(3, 3, dtype=torch.bool).tril(-1)
        causal = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        hidden = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
        return (causal + hidden).transpose(1, 2).flatten(1)

    return Of(forward, qkv=nn.Linear(4, 8))


def flat(*layers):
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(2))


def activations():
    """Many of them, on inputs so large that what is not taken would overflow."""
    kinds = [
        nn.GELU(),
        nn.GELU("tanh"),
        nn.SiLU(),
        nn.Mish(),
        nn.Softplus(2.0, 1.0),
        nn.CELU(2.0),
        nn.SELU(),
        nn.PReLU(),
    ]
    kinds += [
        nn.LogSigmoid(),
        nn.Hardswish(),
        nn.Hardshrink(),
        nn.Softshrink(),
        nn.Softsign(),
        nn.Hardtanh(),
        nn.RReLU(),
    ]
    kinds += [nn.Softmax(-1), nn.LogSoftmax(-1), nn.Tanhshrink(), nn.Threshold(0.1, 0.2), nn.LeakyReLU(), nn.ReLU6()]
    parts = nn.ModuleList(kinds)
    return Of(
        lambda net, x: sum(one(net.one(x)) for one in net.kinds) + functional.softplus(900 * net.one(x)) / 900,
        one=nn.Linear(4, 3),
        kinds=parts,
    )


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def cases() -> dict[str, Case]:
    """Fresh modules with the same weights in every call, in evaluation mode, and a batch of three for each."""
    torch.manual_seed(SEED)
    line, image, box, words = numbers(3, 2, 9), numbers(3, 3, 8, 8), numbers(3, 2, 5, 5, 5), numbers(3, 3, 4)
    row = numbers(3, 4)
    made = {
        "perceptron": (nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)), row),
        "activations": (activations(), row),
        "cnn with batch norm": (
            flat(
                nn.Conv2d(3, 4, 3, padding=1),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(4, 6, 3, groups=2),
            ),
            image,
        ),
        "strides and dilation": (
            flat(nn.Conv2d(3, 3, 3, 2, 2, 2, groups=3), nn.SiLU(), nn.Conv2d(3, 4, (3, 1), padding="same")),
            image,
        ),
        "residual": (
            nn.Sequential(Residual(3, 3, 1), Residual(3, 4, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)),
            image,
        ),
        "transposed": (
            flat(nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(4, 2, 2, groups=2)),
            image,
        ),
        "one dimension": (
            flat(
                nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular"),
                nn.ReLU(),
                nn.MaxPool1d(3, 2, 1, ceil_mode=True),
                nn.ConvTranspose1d(3, 2, 2),
                nn.AvgPool1d(3, 2, 1, ceil_mode=True),
            ),
            line,
        ),
        "three dimensions": (
            flat(nn.Conv3d(2, 3, 2), nn.ELU(), nn.MaxPool3d(2, 1, ceil_mode=True), nn.AvgPool3d(2, ceil_mode=True)),
            box,
        ),
        "pooling with rests": (
            flat(
                nn.Conv2d(3, 3, 1),
                nn.MaxPool2d(3, 2, 1, 2, ceil_mode=True),
                nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
            ),
            image,
        ),
        "mean over a divisor": (
            flat(nn.Conv2d(3, 2, 1), nn.AvgPool2d(3, 2, ceil_mode=True, divisor_override=5)),
            image,
        ),
        "adaptive pooling": (
            flat(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d((5, 3)), nn.AdaptiveMaxPool2d((2, 2))),
            image,
        ),
        "group, layer and instance norm": (
            flat(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.LayerNorm([6, 6]), nn.InstanceNorm2d(4, affine=True)),
            image,
        ),
        "root mean square norm": (nn.Sequential(nn.Linear(4, 5), nn.RMSNorm(5), nn.LayerNorm(5, bias=False)), row),
        "upsampling": (
            flat(
                nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect"),
                nn.Upsample(scale_factor=2),
                nn.Upsample((5, 7), mode="bilinear"),
                nn.PixelShuffle(1),
            ),
            image,
        ),
        "transformer encoder": (
            nn.Sequential(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, norm_first=True), nn.Flatten()),
            words,
        ),
        "transformer decoder": (decoder(), words),
        "masked attention": (masked_attention(), words),
        "LSTM, both ways": (last(nn.LSTM, bidirectional=True), words),
        "GRU of two layers": (last(nn.GRU, num_layers=2), words),
        "RNN": (last(nn.RNN, nonlinearity="relu"), words),
        "tied embedding": (tied(), torch.randint(0, 7, (3, 4))),
        "embedding bag": (
            Of(lambda net, x: net.bag(x), bag=nn.EmbeddingBag(7, 3, mode="mean")),
            torch.randint(0, 7, (3, 4)),
        ),
        "shared layer": (shared(), row),
        "stopped gradients": (stopped(), row),
        "in place": (in_place(), row),
        "bilinear and distances": (
            Of(
                lambda net, x: net.both(x, torch.cdist(x[:, None], net.points)[:, 0]),
                both=nn.Bilinear(4, 3, 2),
                points=nn.Parameter(numbers(3, 4)),
            ),
            row,
        ),
        "weight norm": (
            nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), nn.GLU(-1)),
            row,
        ),
    }
    for module, example in made.values():
        module.double()
        if any(nn.parameter.is_lazy(one) for one in module.parameters()):
            module(example)
        for buffer in module.buffers():
            if buffer.is_floating_point():
                buffer += 0.3 * torch.rand_like(buffer)
        module.double().eval().requires_grad_()
    return made
