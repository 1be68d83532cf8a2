"""What PyTorch on one machine reaches with the models of deploy/jobs/criteo_MODEL.yaml on the synthetic click log: what
docs/progress.md compares with. By hand; needs python3-torch.

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

FIELDS, DENSE, BUCKETS, DIM, HIDDEN = 26, 13, 100_000, 16, (512, 256)
BATCH, RATE = 512, 0.02
# wide, pairs, deep, cross layers
MODELS = {"logistic_regression": (True, False, False, 0), "factorization_machine": (True, True, False, 0),
          "mlp": (False, False, True, 0), "wide_deep": (True, False, True, 0), "deepfm": (True, True, True, 0),
          "dcn_v2": (False, False, True, 2)}


def read(paths):
    labels, dense, ids = [], [], []
    for path in paths:
        with gzip.open(path, "rt") as file:
            for line in file:
                fields = line.rstrip("\n").split("\t")
                labels.append(int(fields[0]))
                dense.append([np.log1p(max(0, int(x))) if x else 0.0 for x in fields[1:14]])
                ids.append([((int(x, 16) * 0x9E3779B97F4A7C15 + 12345 * (f + 1)) % (1 << 64) >> 20) % (BUCKETS - 1) + 1
                            if x else 0 for f, x in enumerate(fields[14:])])
    offsets = np.arange(FIELDS) * BUCKETS
    return (torch.tensor(labels, dtype=torch.float32), torch.tensor(np.array(dense, dtype=np.float32)),
            torch.tensor(np.array(ids, dtype=np.int64) + offsets))


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
        width = DENSE + FIELDS * DIM
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
            logit = logit + 0.5 * (total ** 2 - squares).sum(1)
        if deep:
            first = x = torch.cat([vectors.flatten(1), dense], 1)
            for layer in self.cross:
                x = first * layer(x) + x
            for layer in self.layers[:-1]:
                x = torch.relu(layer(x))
            logit = logit + self.layers[-1](x)[:, 0]
        return logit


def auc(labels, scores):
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    _, first, inverse, counts = np.unique(scores[order], return_index=True, return_inverse=True, return_counts=True)
    ranks[order] = (first + (counts + 1) / 2)[inverse]
    positive = labels.sum()
    return (ranks[labels == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(labels) - positive))


def train(parts, data, test, seed):
    torch.manual_seed(seed)
    net = Net(*parts)
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
    parser.add_argument("models", nargs="*", default=list(MODELS))
    arguments = parser.parse_args()
    data = read(sorted(glob.glob(os.path.join(arguments.data, "train-*.tsv.gz"))))
    test = read([os.path.join(arguments.data, "test.tsv.gz")])
    for model in arguments.models:
        found = [train(MODELS[model], data, test, int(seed)) for seed in arguments.seeds.split(",")]
        print(f"{model}: mean AUC {np.mean(found):.4f} of " + ", ".join(f"{one:.4f}" for one in found), flush=True)


if __name__ == "__main__":
    main()
