#!/usr/bin/env python3
"""Makes the files that deploy/jobs/movielens_two_tower.yaml, movielens_sasrec.yaml and movielens_din.yaml read, from
MovieLens' ratings.

Usage: movielens_ranking.py RATINGS.csv.gz OUT_FOLDER [--window=50] [--negatives=100] [--choices=20] [--seed=1]

Each rating counts as one that the user chose the film, whatever its stars. A user's last rating (by time, then by film) is
held out; all others are for training. Films are numbered from 1 in the order of their ids, 0 is padding.

  pairs.csv      user,item,frequency   a line for each rating for training; in how many of them the film is
  sequences.csv  user,items            the films of a user in the order of time, cut into windows that share one film
  choices.csv    user,items,item,label of each user's last choices for training: the films before, the film (label 1), and
                                       one that the user never rated (label 0)
  test.csv       user,items,item,label for each user 1 film that was held out (label 1), and films that the user never rated
                                       (label 0, drawn uniformly); `items`: the user's last window for training
  items.csv      item,movieId          which number is which film
"""
import argparse
import collections
import csv
import gzip
import os
import random


def read(path):
    """[(user, time, film)], sorted."""
    with gzip.open(path, "rt", newline="") as file:
        return sorted((int(row["userId"]), int(row["timestamp"]), int(row["movieId"])) for row in csv.DictReader(file))


def write(folder, name, header, rows):
    path = os.path.join(folder, name)
    with open(path + ".part", "w") as file:
        file.write(",".join(header) + "\n")
        for row in rows:
            file.write(",".join(map(str, row)) + "\n")
    os.rename(path + ".part", path)


def windows(items, size):
    """Consecutive films are together in one window, each pair of them once."""
    begin = 0
    while begin == 0 or begin + 1 < len(items):
        yield items[begin:begin + size]
        begin += size - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ratings")
    parser.add_argument("out")
    parser.add_argument("--window", type=int, default=50)
    parser.add_argument("--negatives", type=int, default=100)
    parser.add_argument("--choices", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ratings = read(arguments.ratings)
    films = sorted({film for _, _, film in ratings})
    number = {film: i + 1 for i, film in enumerate(films)}
    histories = collections.defaultdict(list)
    for user, _, film in ratings:
        histories[user].append(number[film])
    frequency = collections.Counter(item for items in histories.values() for item in items[:-1])

    def space(items):
        return " ".join(map(str, items))

    def unrated(user, items, count, purpose):
        """Distinct films that the user never rated."""
        draw = random.Random(f"{arguments.seed} {purpose} {user}")
        seen, found = set(items), []
        while len(found) < count:
            item = draw.randrange(1, len(films) + 1)
            if item not in seen:
                seen.add(item)
                found.append(item)
        return found

    def test():
        for user, items in histories.items():
            history = space(items[:-1][-arguments.window:])
            yield user, history, items[-1], 1
            for item in unrated(user, items, arguments.negatives, "test"):
                yield user, history, item, 0

    def choices():
        for user, items in histories.items():
            places = range(max(1, len(items) - 1 - arguments.choices), len(items) - 1)
            for place, other in zip(places, unrated(user, items, len(places), "choices")):
                history = space(items[max(0, place - arguments.window):place])
                yield user, history, items[place], 1
                yield user, history, other, 0

    os.makedirs(arguments.out, exist_ok=True)
    write(arguments.out, "pairs.csv", ("user", "item", "frequency"),
          ((user, item, frequency[item]) for user, items in histories.items() for item in items[:-1]))
    write(arguments.out, "sequences.csv", ("user", "items"),
          ((user, space(window)) for user, items in histories.items() for window in windows(items[:-1], arguments.window)))
    write(arguments.out, "choices.csv", ("user", "items", "item", "label"), choices())
    write(arguments.out, "test.csv", ("user", "items", "item", "label"), test())
    write(arguments.out, "items.csv", ("item", "movieId"), enumerate(films, 1))


if __name__ == "__main__":
    main()
