"""The AUC that scikit-learn's MLPClassifier reaches on the two labels of deploy/jobs/adult_mmoe.yaml, one network for each
label, from the same columns. By hand; needs python3-sklearn. Results go to model_results.json, which models_long_test
compares with.

  adult_tasks.py DATA/adult [--seeds=1,2,3]
"""
import argparse
import gzip
import os
import warnings

import numpy as np
from scipy.sparse import hstack
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import model_results

NUMBERS, TEXTS = [0, 4, 10, 11, 12], [1, 3, 6, 8, 9, 13]
LABELS = {"income": lambda row: row[14].startswith(">50K"), "never_married": lambda row: row[5] == "Never-married"}


def read(path):
    with gzip.open(path, "rt") as file:
        rows = [[field.strip() for field in line.split(",")] for line in file]
    return [row for row in rows if len(row) == 15]


def numbers(rows):
    return np.array([[float(row[i]) for i in NUMBERS] for row in rows])


def texts(rows):
    return [[row[i] for i in TEXTS] for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--seeds", default="1,2,3")
    arguments = parser.parse_args()
    train, test = (read(os.path.join(arguments.data, f"adult.{part}.gz")) for part in ("data", "test"))
    scaler, encoder = StandardScaler().fit(numbers(train)), OneHotEncoder(handle_unknown="ignore").fit(texts(train))
    x, x_test = (hstack([scaler.transform(numbers(rows)), encoder.transform(texts(rows))]).tocsr() for rows in (train, test))
    warnings.filterwarnings("ignore", message="Stochastic Optimizer")  # 5 epochs, as the job

    def auc(label, seed):
        of = LABELS[label]
        net = MLPClassifier((64, 32), batch_size=128, max_iter=5, random_state=seed).fit(x, [of(row) for row in train])
        return roc_auc_score([of(row) for row in test], net.predict_proba(x_test)[:, 1])

    model_results.run("adult", LABELS, [int(seed) for seed in arguments.seeds.split(",")], auc)


if __name__ == "__main__":
    main()
