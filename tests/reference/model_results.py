"""The results of click_models.py and ranking_models.py, one for each model and seed, in model_results.json beside them.
models_long_test reads it. A script that is stopped goes on where it was; who changes a model removes its results."""
import json
import os

import numpy as np

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model_results.json")


def load():
    if not os.path.exists(FILE):
        return {}
    with open(FILE) as file:
        return json.load(file)


def store(model, seed, value):
    """Other processes of these scripts may run at the same time with other models or seeds."""
    results = load()
    results.setdefault(model, {})[str(seed)] = round(float(value), 6)
    with open(f"{FILE}.{os.getpid()}", "w") as file:
        json.dump(results, file, indent=2, sort_keys=True)
        file.write("\n")
    os.replace(file.name, FILE)


def run(kind, models, seeds, train):
    """Calls train(model, seed) for what has no result yet and prints the means. kind goes before the model's name."""
    for model in models:
        for seed in seeds:
            if str(seed) not in load().get(f"{kind}_{model}", {}):
                store(f"{kind}_{model}", seed, train(model, seed))
        found = [load()[f"{kind}_{model}"][str(seed)] for seed in seeds]
        print(f"{model}: mean {np.mean(found):.4f} of " + ", ".join(f"{one:.4f}" for one in found), flush=True)
