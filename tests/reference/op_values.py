"""Values that PyTorch gives for ops: tests/reference/op_values.txt, which op_values_test.cc compares the kernels with. By
hand, with Debian's python3-torch:

  python3 tests/reference/op_values.py > tests/reference/op_values.txt

A line per tensor: `op NAME [ATTR=VALUE ...]` begins a case; `in` and `out` are followed by type, shape and elements. An
attribute's value is an int, a list of ints in brackets, true or false, a float with a point, the name of a type, or a
shape such as <2,3>.
"""
import torch
from torch.nn import functional as F

torch.manual_seed(1)
TYPES = {torch.float32: "float32", torch.int64: "int64", torch.int32: "int32", torch.bool: "bool", torch.uint8: "uint8"}


def write(kind, tensor):
    shape = ",".join(str(n) for n in tensor.shape)
    values = [format(v, ".9g") if tensor.dtype == torch.float32 else str(int(v)) for v in tensor.flatten().tolist()]
    print(kind, TYPES[tensor.dtype], f"[{shape}]", *values)


def case(op, inputs, output, **attrs):
    def text(value):
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, torch.dtype):
            return TYPES[value]
        if isinstance(value, torch.Size):
            return "<" + ",".join(str(v) for v in value) + ">"
        if isinstance(value, (list, tuple)):
            return "[" + ",".join(str(v) for v in value) + "]"
        return repr(value)

    print("op", op, *(f"{name}={text(value)}" for name, value in attrs.items()))
    for tensor in inputs:
        write("in", tensor)
    write("out", output)


def main():
    x = torch.randn(3, 5) * 2
    y = torch.randn(3, 5)
    row = torch.randn(5)
    edges = torch.tensor([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, float("inf"), float("-inf"), float("nan")])
    ints = torch.tensor([[7, -7, 7, -7, 0], [2, 3, -4, 9, -9]])
    divisors = torch.tensor([2, 2, -2, -2, 5])
    some = torch.tensor([[True, False, True, False, True]])

    for op, f in {"abs": torch.abs, "sign": torch.sign, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round,
                  "sin": torch.sin, "cos": torch.cos}.items():
        case(op, [x], f(x))
        finite = edges if op not in ("sin", "cos") else edges[:7]
        if op == "sign":  # PyTorch's sign of NaN is 0; ours is NaN
            finite = edges[:9]
        case(op, [finite], f(finite))
    case("abs", [ints], torch.abs(ints))
    case("sign", [ints], torch.sign(ints))
    base = torch.rand(3, 5) * 2 + 0.1
    case("pow", [base, row], torch.pow(base, row))
    case("pow", [x, torch.tensor(3.0)], torch.pow(x, 3.0))
    case("pow", [x, torch.tensor(-2.0)], torch.pow(x, -2.0))

    for op, f in {"greater": torch.gt, "greater_equal": torch.ge, "less": torch.lt, "less_equal": torch.le,
                  "equal": torch.eq, "not_equal": torch.ne}.items():
        case(op, [x, row], f(x, row))
        case(op, [ints, divisors], f(ints, divisors))
        case(op, [edges, torch.flip(edges, [0])], f(edges, torch.flip(edges, [0])))
    case("logical_and", [x > 0, some], torch.logical_and(x > 0, some))
    case("logical_or", [x > 0, some], torch.logical_or(x > 0, some))
    case("logical_not", [some], torch.logical_not(some))
    case("where", [some, x, row], torch.where(some, x, row))
    case("where", [x > 0, ints[0], ints[1][:1]], torch.where(x > 0, ints[0], ints[1][:1]))
    case("floor_divide", [ints, divisors], torch.div(ints, divisors, rounding_mode="floor"))
    case("modulo", [ints, divisors], torch.remainder(ints, divisors))

    cube = torch.randn(2, 3, 4)
    for axes in ([0], [1], [2], [0, 2]):
        for keep in (False, True):
            case("reduce_max", [cube], torch.amax(cube, axes, keep), axes=axes, keep_dims=keep)
            case("reduce_min", [cube], torch.amin(cube, axes, keep), axes=axes, keep_dims=keep)
    for axis in (0, 1, 2):
        case("reduce_prod", [cube], torch.prod(cube, axis), axes=[axis])
        case("reduce_any", [cube > 1], torch.any(cube > 1, axis), axes=[axis])
        case("reduce_all", [cube > -1], torch.all(cube > -1, axis), axes=[axis])
        case("argmax", [cube], torch.argmax(cube, axis), axis=axis)
        case("cumsum", [cube], torch.cumsum(cube, axis), axis=axis)
        case("cumsum", [cube], torch.flip(torch.cumsum(torch.flip(cube, [axis]), axis), [axis]), axis=axis, reverse=True)
        case("cumsum", [cube], torch.cumsum(cube, axis) - cube, axis=axis, exclusive=True)
    case("cumsum", [ints], torch.cumsum(ints, 1), axis=1)
    case("sum_of_squares", [cube, x], torch.square(cube).sum() + torch.square(x).sum())

    case("expand_dims", [x], x[None, :, :, None], axes=[0, 3])
    case("squeeze", [cube[:, :1]], cube[:, 0], axes=[1])
    case("tile", [x], x.repeat(2, 3), multiples=[2, 3])
    case("pad", [x], torch.nn.functional.pad(x, (2, 1, 0, 3), value=0.5), before=[0, 2], after=[3, 1], value=0.5)
    case("pad", [ints], torch.nn.functional.pad(ints, (1, 0, 1, 0), value=-1), before=[1, 1], after=[0, 0], value=-1.0)
    case("stop_gradient", [x], x.detach())
    parts = [cube[0], cube[1][:1], cube[1][:0], cube[0][:2]]
    padded = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
    case("pad_sequences", [torch.cat(parts), torch.tensor([0, 3, 4, 4, 6], dtype=torch.int32)], padded, length=3)

    arithmetic(x, row, edges, ints, divisors)
    matrices(x, cube)
    arrays(x, cube, ints)
    gradients(x, cube)


def arithmetic(x, row, edges, ints, divisors):
    other = torch.flip(edges, [0])
    for op, f in {"add": torch.add, "subtract": torch.subtract, "multiply": torch.multiply, "maximum": torch.maximum,
                  "minimum": torch.minimum}.items():
        case(op, [x, row], f(x, row))
        case(op, [x, x[:, :1]], f(x, x[:, :1]))
        case(op, [edges, other], f(edges, other))
        case(op, [ints, divisors], f(ints, divisors))
    case("divide", [x, row], x / row)
    case("divide", [edges, other], edges / other)
    case("negate", [edges], -edges)
    case("negate", [ints], -ints)
    wide = torch.cat([edges, torch.tensor([-100.0, -88.0, -20.0, -1e-3, 1e-6, 20.0, 88.0, 100.0])])
    for op, f in {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "erf": torch.erf, "log": torch.log,
                  "log1p": torch.log1p, "exp": torch.exp, "sqrt": torch.sqrt, "square": torch.square}.items():
        case(op, [x], f(x))
        case(op, [wide], f(wide))
    labels = torch.rand(3, 5)
    for logits in (x, 30 * x):
        case("sigmoid_cross_entropy", [logits, labels],
             F.binary_cross_entropy_with_logits(logits, labels, reduction="none"))
    case("mean_squared_error", [x, labels], F.mse_loss(x, labels))
    for to in (torch.int64, torch.int32, torch.float32):
        case("cast", [x], x.to(to), dtype=to)
        case("cast", [ints], ints.to(to), dtype=to)
        case("cast", [x > 0], (x > 0).to(to), dtype=to)
    case("cast", [ints], ints.to(torch.bool), dtype=torch.bool)
    case("zeros_like", [x], torch.zeros_like(x))
    case("ones_like", [ints], torch.ones_like(ints))


def matrices(x, cube):
    a, b = torch.randn(4, 6), torch.randn(6, 3)
    for ta in (False, True):
        for tb in (False, True):
            case("matmul", [a.T.contiguous() if ta else a, b.T.contiguous() if tb else b], a @ b, transpose_a=ta,
                 transpose_b=tb)
    for axes in ([], [0], [1], [2], [0, 2]):
        for keep in (False, True):
            over = axes or [0, 1, 2]
            case("reduce_sum", [cube], torch.sum(cube, over, keep), axes=axes, keep_dims=keep)
            case("reduce_mean", [cube], torch.mean(cube, over, keep), axes=axes, keep_dims=keep)


def arrays(x, cube, ints):
    case("concat", [cube, cube[:1]], torch.cat([cube, cube[:1]], 0), axis=0)
    case("concat", [cube, cube[:, :, 1:], cube[:, :, :0]], torch.cat([cube, cube[:, :, 1:]], 2), axis=2)
    case("concat", [ints, ints], torch.cat([ints, ints], 1), axis=1)
    case("slice", [cube], cube[1:, 0:2, 1:4], begin=[1, 0, 1], size=[1, 2, 3])
    case("slice", [ints], ints[:, 2:3], begin=[0, 2], size=[2, 1])
    case("reshape", [cube], cube.reshape(4, 6), shape=torch.Size([4, 6]))
    case("reshape_like", [cube, cube.reshape(6, 4)], cube.reshape(6, 4))
    case("transpose", [cube], cube.permute(2, 0, 1), perm=[2, 0, 1])
    case("transpose", [ints], ints.T, perm=[1, 0])
    for axis, indices in ((0, torch.tensor([1, 0, 1])), (1, torch.tensor([2, 2])), (2, torch.tensor([3], dtype=torch.int32))):
        case("gather", [cube, indices], torch.index_select(cube, axis, indices), axis=axis)
    case("gather", [x, torch.tensor([[0, 2], [1, 1]])], x[torch.tensor([[0, 2], [1, 1]])])
    case("broadcast_like", [x, torch.zeros(2, 3, 5)], x.expand(2, 3, 5))
    case("broadcast_like", [x[:, 0], torch.zeros(3, 4)], x[:, :1].expand(3, 4), axes=[1])
    case("reduce_to_like", [cube, torch.zeros(3, 1)], cube.sum(0).sum(1, keepdim=True))


def gradients(x, cube):
    """The ops that compute gradients, by PyTorch's of the op that they belong to."""
    def of(op, f, inputs, attrs, arguments):
        leaf = inputs[0].clone().requires_grad_()
        y = f(leaf, *inputs[1:])
        dy = torch.ones(y.shape) if op == "products_of_others" else torch.randn(y.shape)
        y.backward(dy)
        case(op, arguments(dy, leaf.detach(), y.detach()), leaf.grad, **attrs)

    of("relu_grad", torch.relu, [x], {}, lambda dy, x, y: [dy, y])
    of("slice_grad", lambda c: c[1:, 0:2, 1:4], [cube], dict(begin=[1, 0, 1]), lambda dy, x, y: [dy, x])
    of("tile_grad", lambda x: x.repeat(2, 3), [x], dict(multiples=[2, 3]), lambda dy, x, y: [dy, x])
    of("unpad", lambda x: F.pad(x, (2, 1, 0, 3)), [x], dict(before=[0, 2]), lambda dy, x, y: [dy, x])
    indices = torch.tensor([1, 0, 1])
    of("gather_grad", lambda x: x[indices], [x], dict(axis=0), lambda dy, x, y: [dy, indices, x])
    of("concat_piece", lambda a: torch.cat([cube, a], 2), [cube[:, :, 1:].contiguous()], dict(axis=2, index=1),
       lambda dy, a, y: [dy, cube, a])
    splits = torch.tensor([0, 1, 3], dtype=torch.int32)
    of("pad_sequences_grad", lambda x: torch.nn.utils.rnn.pad_sequence([x[:1], x[1:3]], batch_first=True), [x],
       dict(length=2), lambda dy, x, y: [dy, splits, x])
    of("products_of_others", lambda c: torch.prod(c, 1), [cube], dict(axes=[1]), lambda dy, c, y: [c])
    labels = torch.tensor([0, 4, 2])
    of("sparse_softmax_cross_entropy_grad", lambda x: F.cross_entropy(x, labels, reduction="none"), [x], {},
       lambda dy, x, y: [dy, x, labels])


main()
