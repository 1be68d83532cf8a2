"""tests/reference/optimizer_values.json: what optimizers make of 100 gradients, by PyTorch or by the paper's formula.

Usage: optimizer_values.py > tests/reference/optimizer_values.json    (needs python3-torch and python3-numpy)

Values are [4, 11], rows of a table or all of a variable. Gradients do not depend on them: gradient() is in
tests/psserver/optimizer_reference_test.cc too. A case with `rows` updates at each step only the rows that touched()
says. Formulas are computed in doubles, row after row, from the papers' text.
"""
import json

import numpy as np
import torch

ROWS, DIM, STEPS = 4, 11, 100


def noise(step, i):
    """24 random bits."""
    x = ((step * 1000003 + i * 7919 + 12345) * 2654435761) % 2**32
    x = ((x ^ (x >> 15)) * 2246822519) % 2**32
    return (x ^ (x >> 13)) >> 8


def numbers(step):
    """Within (-0.5, 0.5), exact in floats."""
    return np.array([noise(step, i) / 2**24 - 0.5 for i in range(ROWS * DIM)]).reshape(ROWS, DIM)


def gradient(step):
    """Of some weights the sign is nearly always the same, so that averages and momentum matter."""
    return numbers(step) + np.where(np.arange(ROWS * DIM).reshape(ROWS, DIM) % 3 == 0, 0.25, 0.0)


def touched(step):
    rows = [row for row in range(ROWS) if noise(step, 1000 + row) % 3 != 0]
    return rows or [0]


def start():
    return numbers(0)


def by_torch(make, rows):
    x = torch.tensor(start(), dtype=torch.float32, requires_grad=True)
    optimizer = make([x])
    for step in range(1, STEPS + 1):
        g = torch.tensor(gradient(step), dtype=torch.float32)
        if rows:
            ids = touched(step)
            x.grad = torch.sparse_coo_tensor(torch.tensor([ids]), g[ids], (ROWS, DIM)).coalesce()
        else:
            x.grad = g
        optimizer.step()
    return x.detach().numpy()


def by_formula(make, rows):
    """`make()` is a function (x, g, step) that changes a row in place and keeps the row's state."""
    x, updates = start(), [make() for _ in range(ROWS)]
    for step in range(1, STEPS + 1):
        for row in touched(step) if rows else range(ROWS):
            updates[row](x[row], gradient(step)[row], step)
    return x


def rowwise_adagrad(rate, initial, epsilon):
    """FBGEMM, EmbOptimType.EXACT_ROWWISE_ADAGRAD."""
    def make():
        n = [initial]

        def update(x, g, _):
            n[0] += np.mean(g * g)
            x -= rate / (np.sqrt(n[0]) + epsilon) * g
        return update
    return make


def ftrl(alpha, beta, l1, l2, initial):
    """McMahan et al. (2013), algorithm 1, with the weights given instead of starting from 0."""
    def make():
        z, n = np.zeros(DIM), np.full(DIM, float(initial))

        def update(x, g, _):
            sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / alpha
            z[:] += g - sigma * x
            n[:] += g * g
            w = -(z - np.sign(z) * l1) / ((beta + np.sqrt(n)) / alpha + l2)
            x[:] = np.where(np.abs(z) <= l1, 0.0, w)
        return update
    return make


def adam(rate, beta1, beta2, epsilon, decay=0.0, by_row=False):
    """Kingma and Ba (2015), algorithm 1; decay: Loshchilov and Hutter (2019), algorithm 2."""
    def make():
        m, v, count = np.zeros(DIM), np.zeros(DIM), [0]

        def update(x, g, step):
            count[0] += 1
            t = count[0] if by_row else step
            x *= 1 - rate * decay
            m[:] = beta1 * m + (1 - beta1) * g
            v[:] = beta2 * v + (1 - beta2) * g * g
            x -= rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        return update
    return make


def momentum(rate, mu, nesterov):
    """Sutskever et al. (2013) as PyTorch writes it, of the rows that are touched."""
    def make():
        m = np.zeros(DIM)

        def update(x, g, _):
            m[:] = mu * m + g
            x -= rate * (g + mu * m if nesterov else m)
        return update
    return make


def rmsprop(rate, rho, epsilon):
    def make():
        v = np.zeros(DIM)

        def update(x, g, _):
            v[:] = rho * v + (1 - rho) * g * g
            x -= rate * g / (np.sqrt(v) + epsilon)
        return update
    return make


def lion(rate, beta1, beta2, decay):
    """Chen et al. (2023), algorithm 2."""
    def make():
        m = np.zeros(DIM)

        def update(x, g, _):
            c = beta1 * m + (1 - beta1) * g
            x -= rate * (np.sign(c) + decay * x)
            m[:] = beta2 * m + (1 - beta2) * g
        return update
    return make


CASES = []


def case(name, optimizer, source, rows, values):
    CASES.append({"name": name, "optimizer": optimizer, "source": source, "rows": rows,
                  "values": [float("%.9g" % v) for v in np.asarray(values, dtype=np.float64).ravel()]})


def torch_case(name, optimizer, make, rows=False):
    case(name, optimizer, "PyTorch " + torch.__version__.split("+")[0], rows, by_torch(make, rows))


def formula_case(name, optimizer, make, rows=True):
    case(name, optimizer, "formula", rows, by_formula(make, rows))


def main():
    t = torch.optim
    torch_case("sgd", {"sgd": {"learning_rate": 0.1}}, lambda p: t.SGD(p, 0.1))
    torch_case("sgd_rows", {"sgd": {"learning_rate": 0.1}}, lambda p: t.SGD(p, 0.1), rows=True)
    torch_case("momentum", {"sgd": {"learning_rate": 0.02, "momentum": 0.9}}, lambda p: t.SGD(p, 0.02, momentum=0.9))
    torch_case("nesterov", {"sgd": {"learning_rate": 0.02, "momentum": 0.8, "nesterov": True}},
               lambda p: t.SGD(p, 0.02, momentum=0.8, nesterov=True))
    formula_case("momentum_rows", {"sgd": {"learning_rate": 0.02, "momentum": 0.9}}, momentum(0.02, 0.9, False))
    formula_case("nesterov_rows", {"sgd": {"learning_rate": 0.02, "momentum": 0.8, "nesterov": True}},
                 momentum(0.02, 0.8, True))
    adagrad = {"adagrad": {"learning_rate": 0.1, "initial_accumulator": 0.1}}
    torch_case("adagrad", adagrad, lambda p: t.Adagrad(p, 0.1, initial_accumulator_value=0.1))
    torch_case("adagrad_rows", adagrad, lambda p: t.Adagrad(p, 0.1, initial_accumulator_value=0.1), rows=True)
    torch_case("adam", {"adam": {"learning_rate": 0.01}}, lambda p: t.Adam(p, 0.01))
    torch_case("adam_settings", {"adam": {"learning_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "epsilon": 0.001}},
               lambda p: t.Adam(p, 0.02, betas=(0.8, 0.95), eps=0.001))
    torch_case("adam_rows", {"adam": {"learning_rate": 0.01}}, lambda p: t.SparseAdam(p, 0.01), rows=True)
    formula_case("adam_row_count", {"adam": {"learning_rate": 0.01, "bias_correction": "row"}},
                 adam(0.01, 0.9, 0.999, 1e-8, by_row=True))
    torch_case("adamw", {"adamw": {"learning_rate": 0.01, "weight_decay": 0.1}},
               lambda p: t.AdamW(p, 0.01, weight_decay=0.1))
    formula_case("adamw_rows", {"adamw": {"learning_rate": 0.01, "weight_decay": 0.1}},
                 adam(0.01, 0.9, 0.999, 1e-8, decay=0.1))
    formula_case("adamw_row_count", {"adamw": {"learning_rate": 0.01, "bias_correction": "row"}},
                 adam(0.01, 0.9, 0.999, 1e-8, decay=0.01, by_row=True))
    torch_case("rmsprop", {"rmsprop": {"learning_rate": 0.01}}, lambda p: t.RMSprop(p, 0.01))
    torch_case("rmsprop_momentum", {"rmsprop": {"learning_rate": 0.003, "rho": 0.9, "momentum": 0.9}},
               lambda p: t.RMSprop(p, 0.003, alpha=0.9, momentum=0.9))
    torch_case("rmsprop_centered", {"rmsprop": {"learning_rate": 0.01, "centered": True}},
               lambda p: t.RMSprop(p, 0.01, centered=True))
    torch_case("rmsprop_all", {"rmsprop": {"learning_rate": 0.003, "rho": 0.9, "momentum": 0.5, "centered": True,
                                           "epsilon": 0.01}},
               lambda p: t.RMSprop(p, 0.003, alpha=0.9, momentum=0.5, centered=True, eps=0.01))
    formula_case("rmsprop_rows", {"rmsprop": {"learning_rate": 0.01}}, rmsprop(0.01, 0.99, 1e-8))
    formula_case("rowwise_adagrad", {"rowwise_adagrad": {"learning_rate": 0.1}}, rowwise_adagrad(0.1, 0.0, 1e-8),
                 rows=False)
    formula_case("rowwise_adagrad_rows",
                 {"rowwise_adagrad": {"learning_rate": 0.1, "initial_accumulator": 0.2, "epsilon": 0.01}},
                 rowwise_adagrad(0.1, 0.2, 0.01))
    formula_case("ftrl", {"ftrl": {"learning_rate": 0.1}}, ftrl(0.1, 1, 0, 0, 0), rows=False)
    formula_case("ftrl_rows", {"ftrl": {"learning_rate": 0.2, "beta": 0.5, "l1": 2.0, "l2": 0.3,
                                        "initial_accumulator": 0.1}}, ftrl(0.2, 0.5, 2.0, 0.3, 0.1))
    formula_case("lion", {"lion": {"learning_rate": 0.01}}, lion(0.01, 0.9, 0.99, 0.0), rows=False)
    formula_case("lion_rows", {"lion": {"learning_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "weight_decay": 0.1}},
                 lion(0.02, 0.8, 0.95, 0.1))
    lines = ",\n".join(json.dumps(c) for c in CASES)
    print(f'{{"rows": {ROWS}, "dim": {DIM}, "steps": {STEPS}, "cases": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()
