"""The AUC that PyTorch on one machine reaches with the models of deploy/jobs/criteo_MODEL.yaml on the synthetic click log.
By hand; needs python3-torch. Results go to model_results.json, which models_long_test compares with.

  coordinator make-data criteo --rows=300000 --test_rows=50000 --seed=1 --out=DATA/criteo-like
  click_models.py DATA/criteo-like [--seeds=1,2,3] [MODEL ...]

The same parts, widths, initial values, batches (512, in the order of the files), optimizer (Adagrad, 0.02) and warm-up as
the job files. Only the hash from text to bucket is another one.
"""
import argparse
import glob
import gzip
import os

import numpy as np
import torch
from torch import nn

import model_results

FIELDS, DENSE, BUCKETS, DIM, HIDDEN = 26, 13, 100_000, 16, (512, 256)
BATCH, RATE = 512, 0.02
# wide, pairs ("pooled": before the layers, He and Chua, 2017), deep, cross layers
MODELS = {"logistic_regression": (True, False, False, 0), "factorization_machine": (True, True, False, 0),
          "mlp": (False, False, True, 0), "wide_deep": (True, False, True, 0), "deepfm": (True, True, True, 0),
          "dcn_v2": (False, False, True, 2), "nfm": (True, "pooled", True, 0)}
BOTTOM, TOP = (512, 256, 64, DIM), (512, 256, 1)  # of DLRM


def read(paths):
    """The categoricals of a line are its last 233 bytes: 26 times 8 hex digits. The log has all of them."""
    labels, dense, digits = [], [], []
    for path in paths:
        with gzip.open(path, "rb") as file:
            for line in file:
                line = line.rstrip(b"\n")
                fields = line[:-234].split(b"\t")
                labels.append(fields[0] == b"1")
                dense.append([int(x or 0) for x in fields[1:14]])
                digits.append(line[-233:] + b"\t")
    digits = np.frombuffer(b"".join(digits), np.uint8).reshape(len(labels), FIELDS, 9)
    assert (digits[:, :, 8] == ord("\t")).all()
    digits = digits[:, :, :8].astype(np.uint64)
    texts = np.zeros(digits.shape[:2], np.uint64)
    for i in range(8):
        digit = digits[:, :, i]
        texts = texts << np.uint64(4) | np.where(digit >= ord("a"), digit - np.uint64(ord("a") - 10), digit - np.uint64(48))
    fields = np.arange(FIELDS)
    hashes = texts * np.uint64(0x9E3779B97F4A7C15) + (12345 * (fields + 1)).astype(np.uint64)
    ids = (hashes >> np.uint64(20)) % np.uint64(BUCKETS - 1) + np.uint64(1)
    return (torch.tensor(labels, dtype=torch.float32), torch.from_numpy(np.log1p(np.maximum(0, dense)).astype(np.float32)),
            torch.from_numpy(ids.astype(np.int64) + fields * BUCKETS))


class Net(nn.Module):
    def __init__(self, wide, pairs, deep, cross):
        super().__init__()
        self.has = wide, pairs, deep
        if wide:
            self.weights = nn.Embedding(FIELDS * BUCKETS, 1, sparse=True)
            nn.init.zeros_(self.weights.weight)
            self.dense_weights = nn.Linear(DENSE, 1)
            nn.init.zeros_(self.dense_weights.weight)
            nn.init.zeros_(self.dense_weights.bias)
        if pairs or deep:
            self.vectors = nn.Embedding(FIELDS * BUCKETS, DIM, sparse=True)
            nn.init.uniform_(self.vectors.weight, -0.05, 0.05)
        if pairs:
            self.dense_vectors = nn.Parameter(torch.empty(DENSE, DIM).uniform_(-0.05, 0.05))
        width = DIM if pairs == "pooled" else DENSE + FIELDS * DIM
        self.cross = nn.ModuleList(nn.Linear(width, width) for _ in range(cross))
        self.layers = nn.ModuleList()
        for out in (*HIDDEN, 1) if deep else ():
            self.layers.append(nn.Linear(width, out))
            width = out
        for layer in (*self.cross, *self.layers):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, dense, ids):
        wide, pairs, deep = self.has
        logit = 0.0
        if wide:
            logit = self.weights(ids).sum((1, 2)) + self.dense_weights(dense)[:, 0]
        if pairs or deep:
            vectors = self.vectors(ids)
        if pairs:
            total = vectors.sum(1) + dense @ self.dense_vectors
            squares = (vectors ** 2).sum(1) + dense ** 2 @ self.dense_vectors ** 2
            products = 0.5 * (total ** 2 - squares)
            if pairs != "pooled":
                logit = logit + products.sum(1)
        if deep:
            first = x = products if pairs == "pooled" else torch.cat([vectors.flatten(1), dense], 1)
            for layer in self.cross:
                x = first * layer(x) + x
            for layer in self.layers[:-1]:
                x = torch.relu(layer(x))
            logit = logit + self.layers[-1](x)[:, 0]
        return logit


class Dlrm(nn.Module):
    """Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems" (2019)."""

    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(FIELDS * BUCKETS, DIM, sparse=True)
        nn.init.uniform_(self.vectors.weight, -0.05, 0.05)
        self.pairs = torch.tril_indices(FIELDS + 1, FIELDS + 1, -1)
        self.bottom = self.layers(DENSE, BOTTOM)
        self.top = self.layers(DIM + FIELDS * (FIELDS + 1) // 2, TOP)

    @staticmethod
    def layers(inputs, widths):
        out = nn.ModuleList(nn.Linear(a, b) for a, b in zip((inputs, *widths), widths))
        for layer in out:
            nn.init.normal_(layer.weight, 0, (2 / sum(layer.weight.shape)) ** 0.5)
            nn.init.normal_(layer.bias, 0, (1 / len(layer.bias)) ** 0.5)
        return out

    def forward(self, dense, ids):
        x = dense
        for layer in self.bottom:
            x = torch.relu(layer(x))
        vectors = torch.cat([x.unsqueeze(1), self.vectors(ids)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        x = torch.cat([x, products], 1)
        for layer in self.top[:-1]:
            x = torch.relu(layer(x))
        return self.top[-1](x)[:, 0]


def auc(labels, scores):
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    _, first, inverse, counts = np.unique(scores[order], return_index=True, return_inverse=True, return_counts=True)
    ranks[order] = (first + (counts + 1) / 2)[inverse]
    positive = labels.sum()
    return (ranks[labels == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(labels) - positive))


def train(model, data, test, seed):
    torch.manual_seed(seed)
    net = Dlrm() if model == "dlrm" else Net(*MODELS[model])
    optimizer = torch.optim.Adagrad(net.parameters(), lr=RATE)
    labels, dense, ids = data
    steps = -(-len(labels) // BATCH)
    warm_up = min(200, steps // 10)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / warm_up)
        rows = slice(step * BATCH, (step + 1) * BATCH)
        loss = nn.functional.binary_cross_entropy_with_logits(net(dense[rows], ids[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        scores = torch.cat([net(d, i) for d, i in zip(test[1].split(4096), test[2].split(4096))])
    return auc(test[0].numpy(), scores.numpy())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("models", nargs="*", default=[*MODELS, "dlrm"])
    arguments = parser.parse_args()
    data = read(sorted(glob.glob(os.path.join(arguments.data, "train-*.tsv.gz"))))
    test = read([os.path.join(arguments.data, "test.tsv.gz")])
    model_results.run("click", arguments.models, [int(seed) for seed in arguments.seeds.split(",")],
                      lambda model, seed: train(model, data, test, seed))


if __name__ == "__main__":
    main()
