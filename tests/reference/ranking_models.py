"""What PyTorch on one machine reaches with the models of deploy/jobs/movielens_two_tower.yaml and movielens_sasrec.yaml:
the hit rate at 10, each user's last film among 100 that the user never rated. By hand; needs python3-torch. Results go to
model_results.json.

  deploy/movielens_ranking.py DATA/movielens/ratings.csv.gz FOLDER
  ranking_models.py FOLDER [--seeds=1,2,3] [popularity|two_tower|sasrec ...]

The same layers, losses, batches, optimizers and numbers of epochs as the job files.
"""
import argparse
import csv
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import model_results

USERS, ITEMS = 611, 9725
RANKS_AT = 10


def rows(folder, name):
    with open(os.path.join(folder, name)) as file:
        return list(csv.DictReader(file))


def padded(lists, length):
    """int64 [n, length], zeros at the end, and the lengths."""
    out = np.zeros((len(lists), length), np.int64)
    for i, items in enumerate(lists):
        items = items[-length:]
        out[i, :len(items)] = items
    return torch.from_numpy(out), torch.tensor([min(len(items), length) for items in lists])


class Data:
    def __init__(self, folder, length):
        pairs = rows(folder, "pairs.csv")
        self.pairs = torch.tensor([[int(row["user"]), int(row["item"])] for row in pairs])
        self.frequency = torch.tensor([float(row["frequency"]) for row in pairs])
        self.popularity = np.zeros(ITEMS)
        np.add.at(self.popularity, self.pairs[:, 1].numpy(), 1)
        split = [list(map(int, row["items"].split())) for row in rows(folder, "sequences.csv")]
        self.sequences, self.lengths = padded(split, length)
        test = rows(folder, "test.csv")
        self.test = torch.tensor([[int(row["user"]), int(row["item"]), int(row["label"])] for row in test])
        self.test_sequences, self.test_lengths = padded([list(map(int, row["items"].split())) for row in test], length)


def hit_rate(test, scores):
    """Of the users whose positive is among the first 10; the mean over all orders of equal scores, as Muster's metric."""
    hits = users = 0
    scores = np.asarray(scores)
    for user in np.unique(test[:, 0]):
        mine = test[:, 0].numpy() == user
        positive = scores[mine][test[mine][:, 2].numpy() == 1][0]
        better, equal = (scores[mine] > positive).sum(), (scores[mine] == positive).sum()
        hits += np.clip((RANKS_AT - better) / equal, 0, 1)
        users += 1
    return hits / users


def mlp(widths):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
        nn.init.xavier_uniform_(layers[-2].weight)
        nn.init.zeros_(layers[-2].bias)
    return nn.Sequential(*layers[:-1])


class TwoTower(nn.Module):
    """Towers over one id each; in-batch softmax, corrected for how often an item is in a batch (Yi et al., 2019)."""
    DIM, HIDDEN, TEMPERATURE, BATCH, EPOCHS, RATE = 32, (64, 32), 0.1, 256, 10, 0.002

    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, self.DIM), nn.Embedding(ITEMS, self.DIM)
        for table in (self.user, self.item):
            nn.init.uniform_(table.weight, -0.05, 0.05)
        self.user_tower, self.item_tower = mlp((self.DIM, *self.HIDDEN)), mlp((self.DIM, *self.HIDDEN))

    def towers(self, users, items):
        return (F.normalize(self.user_tower(self.user(users)), dim=1), F.normalize(self.item_tower(self.item(items)), dim=1))

    def loss(self, users, items, frequency):
        user, item = self.towers(users, items)
        logits = user @ item.T / self.TEMPERATURE - torch.log(frequency)
        return F.cross_entropy(logits, torch.arange(len(users)))

    def fit(self, data):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.RATE)
        for epoch in range(self.EPOCHS):
            for batch in torch.randperm(len(data.pairs)).split(self.BATCH):
                loss = self.loss(data.pairs[batch, 0], data.pairs[batch, 1], data.frequency[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def scores(self, data):
        with torch.no_grad():
            user, item = self.towers(data.test[:, 0], data.test[:, 1])
            return (user * item).sum(1)


class SasRec(nn.Module):
    """Kang and McAuley, "Self-Attentive Sequential Recommendation" (2018): each position predicts the next item, against
    one that is drawn uniformly."""
    DIM, LENGTH, BLOCKS, DROPOUT, BATCH, EPOCHS, RATE = 50, 50, 2, 0.2, 64, 60, 0.001

    class Block(nn.Module):
        def __init__(self, dim, dropout):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.attention = nn.MultiheadAttention(dim, 1, batch_first=True)
            self.layers = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(dim, dim),
                                        nn.Dropout(dropout))
            self.dropout = nn.Dropout(dropout)

        def forward(self, x, mask):
            y = self.norm_1(x)
            x = x + self.dropout(self.attention(y, y, y, attn_mask=mask, need_weights=False)[0])
            return x + self.layers(self.norm_2(x))

    def __init__(self):
        super().__init__()
        self.item = nn.Embedding(ITEMS, self.DIM)
        self.position = nn.Parameter(torch.randn(self.LENGTH, self.DIM) * 0.02)
        nn.init.normal_(self.item.weight, 0, 0.02)
        self.blocks = nn.ModuleList(self.Block(self.DIM, self.DROPOUT) for _ in range(self.BLOCKS))
        self.norm = nn.LayerNorm(self.DIM)
        self.dropout = nn.Dropout(self.DROPOUT)

    def states(self, items):
        x = self.dropout(self.item(items) * self.DIM ** 0.5 + self.position[:items.shape[1]])
        mask = torch.triu(torch.ones(items.shape[1], items.shape[1], dtype=torch.bool), 1)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)

    def fit(self, data):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.RATE)
        self.train()
        for epoch in range(self.EPOCHS):
            for batch in torch.randperm(len(data.sequences)).split(self.BATCH):
                items = data.sequences[batch]
                states, targets = self.states(items[:, :-1]), items[:, 1:]
                negatives = torch.randint(1, ITEMS, targets.shape)
                there = (targets != 0).float()
                positive = (states * self.item(targets)).sum(2)
                negative = (states * self.item(negatives)).sum(2)
                loss = ((F.softplus(-positive) + F.softplus(negative)) * there).sum() / there.sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def scores(self, data):
        self.eval()
        with torch.no_grad():
            out = []
            for batch in torch.arange(len(data.test)).split(2048):
                items, lengths = data.test_sequences[batch], data.test_lengths[batch]
                # The last position is never trained: of a full sequence the newest items, without the first.
                full = (lengths == self.LENGTH).unsqueeze(1)
                states = self.states(torch.where(full, items[:, 1:], items[:, :-1]))
                last = states[torch.arange(len(batch)), lengths.clamp(max=self.LENGTH - 1) - 1]
                out.append((last * self.item(data.test[batch, 1])).sum(1))
            return torch.cat(out)


class Popularity:
    def fit(self, data):
        pass

    def scores(self, data):
        return data.popularity[data.test[:, 1].numpy()]


MODELS = {"popularity": Popularity, "two_tower": TwoTower, "sasrec": SasRec}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("models", nargs="*", default=list(MODELS))
    arguments = parser.parse_args()
    data = Data(arguments.folder, SasRec.LENGTH)

    def train(name, seed):
        torch.manual_seed(seed)
        model = MODELS[name]()
        model.fit(data)
        return hit_rate(data.test, model.scores(data))

    model_results.run("ranking", arguments.models, [int(seed) for seed in arguments.seeds.split(",")], train)


if __name__ == "__main__":
    main()
