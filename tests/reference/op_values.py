"""Values that PyTorch gives for ops: tests/reference/op_values.txt, which op_values_test.cc compares the kernels with. By
hand, with Debian's python3-torch:

  python3 tests/reference/op_values.py > tests/reference/op_values.txt

A line per tensor: `op NAME [ATTR=VALUE ...]` begins a case; `in` and `out` are followed by type, shape and elements. An
attribute's value is an int, a list of ints in brackets, true or false, or a float with a point.
"""
import torch

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


main()
