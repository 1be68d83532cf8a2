"""What scikit-learn gives for some records: tests/common/metrics/reference_values.h, which
tests/common/metrics/reference_test.cc compares with. By hand; needs python3-sklearn.

  metric_values.py > tests/common/metrics/reference_values.h
"""
import numpy as np
from sklearn import metrics

RECORDS, CLASSES, GROUPS = 60, 5, 8


def floats(values):
    return ", ".join(f"{np.float32(v)!r}f" for v in np.ravel(values))


def line(kind, name, body):
    print(f"inline const std::vector<{kind}> {name} = {{{body}}};")


def main():
    rng = np.random.default_rng(17)
    logits = rng.normal(-0.5, 1.5, RECORDS)
    p = (1 / (1 + np.exp(-logits))).astype(np.float32)
    p[::7] = p[0]  # some are equal
    y = (rng.random(RECORDS) < p).astype(np.float32)
    w = np.round(rng.random(RECORDS) * 4, 2).astype(np.float32)
    groups = rng.integers(0, GROUPS, RECORDS)
    scores = rng.normal(0, 2, (RECORDS, CLASSES))
    softmax = (np.exp(scores) / np.exp(scores).sum(1, keepdims=True)).astype(np.float32)
    classes = rng.integers(0, CLASSES, RECORDS)
    truth = rng.normal(3, 1, RECORDS).astype(np.float32)
    guess = (truth + rng.normal(0, 0.5, RECORDS)).astype(np.float32)

    ndcg = []
    for group in range(GROUPS):
        of = groups == group
        if y[of].sum() > 0:
            ndcg.append(metrics.ndcg_score([y[of]], [p[of]], k=3))
    one_hot = np.eye(CLASSES)[classes]
    wide = softmax.astype(np.float64)  # of float32, rows do not add up to 1 closely enough for log_loss
    wide /= wide.sum(1, keepdims=True)
    says_one = p >= np.float32(0.3)
    expected = {
        "auc": metrics.roc_auc_score(y, p),
        "pr_auc": metrics.average_precision_score(y, p),
        "logloss": metrics.log_loss(y, p.astype(np.float64)),
        "accuracy": metrics.accuracy_score(y, p >= 0.5),
        "precision@0.3": metrics.precision_score(y, says_one),
        "recall@0.3": metrics.recall_score(y, says_one),
        "f1@0.3": metrics.f1_score(y, says_one),
        "ndcg@3": np.mean(ndcg),
    }
    weighted = {
        "auc": metrics.roc_auc_score(y, p, sample_weight=w),
        "pr_auc": metrics.average_precision_score(y, p, sample_weight=w),
        "logloss": metrics.log_loss(y, p.astype(np.float64), sample_weight=w),
        "accuracy": metrics.accuracy_score(y, p >= 0.5, sample_weight=w),
    }
    multi = {
        "accuracy": metrics.accuracy_score(classes, softmax.argmax(1)),
        "top_k_accuracy@2": metrics.top_k_accuracy_score(classes, softmax, k=2),
        "logloss": metrics.log_loss(classes, wide),
        "mrr": metrics.label_ranking_average_precision_score(one_hot, softmax),
        "ndcg@2": metrics.ndcg_score(one_hot, softmax, k=2),
    }
    regression = {
        "rmse": metrics.mean_squared_error(truth, guess, squared=False),
        "mae": metrics.mean_absolute_error(truth, guess),
        "r2": metrics.r2_score(truth, guess),
    }
    print("// Made by tests/reference/metric_values.py with scikit-learn; do not edit it.")
    print("#pragma once\n\n#include <cstdint>\n#include <map>\n#include <string>\n#include <vector>\n")
    print("namespace mu::testing::reference {\n\n// clang-format off")
    line("float", "kProbabilities", floats(p))
    line("float", "kLabels", floats(y))
    line("float", "kWeights", floats(w))
    line("int64_t", "kGroups", ", ".join(map(str, groups)))
    line("float", "kSoftmax", floats(softmax))
    line("int64_t", "kClasses", ", ".join(map(str, classes)))
    line("float", "kTruth", floats(truth))
    line("float", "kGuess", floats(guess))
    for name, values in (("kBinary", expected), ("kBinaryWeighted", weighted), ("kMultiClass", multi),
                         ("kRegression", regression)):
        body = ", ".join(f'{{"{key}", {float(value)!r}}}' for key, value in values.items())
        print(f"inline const std::map<std::string, double> {name} = {{{body}}};")
    print("// clang-format on\n\n}  // namespace mu::testing::reference")


if __name__ == "__main__":
    main()
