"""Values and gradients of neural_ops.json by PyTorch, which tests/coordinator/frontend/pytorch_test.cc compares with
Muster's. By hand, once; needs python3-torch (1.13).

  neural_ops.py > tests/reference/neural_ops.json

A case: name, inputs (shape and values), the output, and the gradient of each float input of the loss
sum(y * y / 2 + 0.7 * y).
"""
import json

import torch
from torch.nn import functional as F

CASES = []


def case(name, inputs, f):
    inputs = [x if x.dtype == torch.int64 else x.clone().requires_grad_() for x in inputs]
    y = f(*inputs)
    (y * y / 2 + 0.7 * y).sum().backward()
    numbers = lambda t: [float(f"{v:.9g}") for v in t.detach().reshape(-1).tolist()]
    written = []
    for x in inputs:
        entry = {"shape": list(x.shape)}
        if x.dtype == torch.int64:
            entry["ints"] = x.reshape(-1).tolist()
        else:
            entry["floats"] = numbers(x)
            if x.grad is not None:
                entry["gradient"] = numbers(x.grad)
        written.append(entry)
    CASES.append({"name": name, "inputs": written, "shape": list(y.shape), "output": numbers(y)})


def image(x):  # [b, h, w, c] as PyTorch has it
    return x.permute(0, 3, 1, 2)


def back(x):
    return x.permute(0, 2, 3, 1)


def conv(x, kernel, stride, padding=0):
    return back(F.conv2d(image(x), kernel.permute(3, 2, 0, 1), stride=stride, padding=padding))


def rms_norm(x, gamma):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * gamma


def interactions(x):
    i, j = torch.tril_indices(x.shape[1], x.shape[1], -1)
    return torch.bmm(x, x.transpose(1, 2))[:, i, j]


def focal(x, z):
    p = torch.sigmoid(x)
    right = p * z + (1 - p) * (1 - z)
    return -(0.25 * z + 0.75 * (1 - z)) * (1 - right) ** 2 * torch.log(right)


def sampled_softmax(query, positive, negatives, log_q):
    logits = torch.cat([(query * positive).sum(1, keepdim=True), query @ negatives.T - log_q.detach()], 1)
    return F.cross_entropy(logits, torch.zeros(len(query), dtype=torch.int64), reduction="none")


def in_batch_softmax(query, item):
    return F.cross_entropy(query @ item.T / 0.5, torch.arange(len(query)), reduction="none")


def attention(x, mask, *weights):
    width, heads = x.shape[2], 2
    q, k, v, o = (w.T for w in weights[:4])
    y, _ = F.multi_head_attention_forward(
        x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1), width, heads, torch.cat([q, k, v]), weights[4], None, None,
        False, 0.0, o, torch.zeros(width), key_padding_mask=mask == 0,
        attn_mask=torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1))
    return y.transpose(0, 1)


def batch_norm(x, gamma, beta):
    return back(F.batch_norm(image(x), None, None, gamma, beta, training=True, eps=1e-5))


def cross_network(x, *layers):
    y = x
    for kernel, bias in zip(layers[::2], layers[1::2]):
        y = x * (y @ kernel + bias) + y
    return y


def fm(a, b, numbers, vectors):
    """The products of all pairs, one by one."""
    features = [a, b] + [numbers[:, i:i + 1] * vectors[i] for i in range(len(vectors))]
    return sum((features[i] * features[j]).sum(1) for i in range(len(features)) for j in range(i))


def bags(mode):
    offsets = torch.tensor([0, 3, 3, 4])
    ids = torch.tensor([4, 2, 4, 6, 2, 2])

    def f(table):
        if mode != "sqrtn":
            return F.embedding_bag(ids, table, offsets, mode=mode)
        sizes = torch.tensor([3.0, 1.0, 1.0, 2.0])  # an empty bag stays zero
        return F.embedding_bag(ids, table, offsets, mode="sum") / torch.sqrt(sizes)[:, None]
    return f


def main():
    torch.manual_seed(1)
    r = lambda *shape: torch.randn(*shape)
    case("gelu", [3 * r(4, 5)], F.gelu)
    case("silu", [3 * r(4, 5)], F.silu)
    case("softplus", [10 * r(4, 5)], F.softplus)
    case("leaky_relu", [r(4, 5)], lambda x: F.leaky_relu(x, 0.1))
    case("softmax", [5 * r(3, 11)], lambda x: F.softmax(x, -1))
    case("log_softmax", [5 * r(3, 11)], lambda x: F.log_softmax(x, -1))
    case("logsumexp", [5 * r(3, 11)], lambda x: torch.logsumexp(x, -1))
    case("softmax_cross_entropy", [2 * r(3, 5), F.softmax(r(3, 5), -1)],
         lambda x, z: F.cross_entropy(x, z, reduction="none"))
    case("sparse_softmax_cross_entropy", [2 * r(4, 5), torch.tensor([0, 4, 2, 2])],
         lambda x, z: F.cross_entropy(x, z, reduction="none"))
    case("layer_norm", [r(3, 2, 7), r(7), r(7)], lambda x, g, b: F.layer_norm(x, (7,), g, b, 1e-5))
    case("rms_norm", [r(3, 7), r(7)], rms_norm)
    case("batch_norm", [r(3, 2, 2, 4), r(4), r(4)], batch_norm)
    case("l2_normalize", [r(3, 7)], lambda x: F.normalize(x, dim=-1))
    case("cosine_similarity", [r(3, 7), r(3, 7)], lambda a, b: F.cosine_similarity(a, b, dim=-1))
    case("pairwise_interactions", [r(2, 5, 3)], interactions)
    case("conv2d_valid", [r(2, 6, 5, 3), r(3, 2, 3, 4)], lambda x, k: conv(x, k, (1, 1)))
    case("conv2d_same", [r(2, 6, 5, 3), r(3, 3, 3, 4)], lambda x, k: conv(x, k, (1, 1), 1))
    case("conv2d_strides", [r(2, 7, 5, 3), r(3, 3, 3, 2)], lambda x, k: conv(x, k, (2, 1), 1))
    case("max_pool2d", [r(2, 6, 4, 3)], lambda x: back(F.max_pool2d(image(x), 2)))
    case("max_pool2d_overlapping", [r(2, 7, 7, 2)], lambda x: back(F.max_pool2d(image(x), 3, 2, 1)))
    case("avg_pool2d", [r(2, 6, 4, 3)], lambda x: back(F.avg_pool2d(image(x), 2)))
    case("avg_pool2d_same", [r(2, 7, 7, 2)],
         lambda x: back(F.avg_pool2d(image(x), 3, 2, 1, count_include_pad=False)))
    case("batch_matmul", [r(2, 1, 3, 4), r(3, 4, 2)], torch.matmul)
    case("huber", [2 * r(9), r(9)], lambda x, z: F.huber_loss(x, z, reduction="none", delta=0.8))
    case("mean_absolute_error", [r(9), r(9)], F.l1_loss)
    case("hinge", [r(6), torch.tensor([1.0, 0, 1, 0, 0, 1])], lambda x, z: F.relu(1 - x * (2 * z - 1)))
    case("focal", [2 * r(6), torch.tensor([1.0, 0, 1, 0, 0, 1])], lambda x, z: focal(x, z.detach()))
    case("bpr", [r(4, 1), r(4, 3)], lambda p, n: -F.logsigmoid(p - n))
    case("sampled_softmax", [r(4, 3), r(4, 3), r(5, 3), r(5)], sampled_softmax)
    case("in_batch_softmax", [r(4, 3), r(4, 3)], in_batch_softmax)
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
    case("multi_head_attention", [r(2, 5, 4), mask] + [r(4, 4) for _ in range(4)] + [r(12)], attention)
    for mode in ("sum", "mean", "sqrtn"):
        case("embedding_bag_" + mode, [r(7, 3)], bags(mode))
    case("quantile", [r(9), r(9)], lambda x, z: torch.maximum(0.8 * (z - x), 0.2 * (x - z)))
    case("cross_network", [r(4, 3), r(3, 3), r(3), r(3, 3), r(3)], cross_network)
    case("fm", [r(4, 3), r(4, 3), r(4, 2), r(2, 3)], fm)
    case("group_norm", [r(3, 2, 2, 6), r(6), r(6)], lambda x, g, b: back(F.group_norm(image(x), 3, g, b)))
    print("[\n" + ",\n".join(json.dumps(c) for c in CASES) + "\n]")


if __name__ == "__main__":
    main()
