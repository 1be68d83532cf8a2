#!/usr/bin/env python3
"""Uses a checkpoint without Muster, written from docs/checkpoint_format.md alone; standard library only.

Usage: serve_from_page.py predict CHECKPOINT BUCKETS FILE.tsv
         prints the probability of each line of a click log, by a logistic regression over `dense` (13 numbers) and
         `ids` (26 fields, hashed into BUCKETS)
       serve_from_page.py predict_csv CHECKPOINT FILE.csv
         the same of a CSV (age,job,city): the model has the columns `job` (hash with seed 7 into 20), `city` (hash into 20),
         `age_bucket` (boundaries 20, 40, 60) and `job_city` and `age_job`, crosses of two of them into 50
       serve_from_page.py compare CHECKPOINT EXPORT.safetensors
         exits with 1 unless every table of the export has, bit for bit, the rows that the checkpoint has and the
         initial values of the others; prints how many of each
"""
import json
import math
import os
import struct
import sys

MASK = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def combine(a, b):
    return mix((mix(a) + G & MASK) ^ (b * 0xFF51AFD7ED558CCD & MASK))


def hash_of(data):
    h = mix(G) ^ (len(data) * 0xFF51AFD7ED558CCD & MASK)
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at:at + 8], "little")
        h = (h ^ mix(word + G & MASK)) * 0x9FB21C651E98DF25 & MASK
        h ^= h >> 32
    return mix(h)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def initial_row(definition, row, columns):
    initializer = definition.get("initializer", {})
    key = combine(combine(int(initializer.get("seed", 0)), hash_of(definition["name"].encode())), row)
    values = []
    for column in range(columns):
        bits = mix(key + (column + 1) * G & MASK)
        if "uniform" in initializer:
            low, high = (f32(initializer["uniform"].get(k, 0)) for k in ("low", "high"))
            value = f32(low + f32((bits >> 40) / 2**24 * f32(high - low)))
        elif "normal" in initializer:
            mean, stddev = (f32(initializer["normal"].get(k, 0)) for k in ("mean", "stddev"))
            n = sum(bits >> shift & 0xFFFF for shift in (0, 16, 32, 48)) - 131070
            value = f32(mean + f32(n * f32(f32(stddev * f32(1.7320508)) * (1 / 65536))))
        else:
            value = f32(initializer.get("constant", {}).get("value", 0))
        values.append(value)
    return values


def tensors_of(path):
    with open(path, "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    for name, tensor in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            letter = {"F32": "f", "I32": "i", "I64": "q"}[tensor["dtype"]]
            first, last = (begin + offset for offset in tensor["data_offsets"])
            yield name, [value for value, in struct.iter_unpack("<" + letter, data[first:last])]


class Checkpoint:
    def __init__(self, directory):
        with open(os.path.join(directory, "manifest.json")) as file:
            self.manifest = json.load(file)
        assert self.manifest["format_version"] == 1
        self.tensors = {}
        for entry in self.manifest["files"]:
            self.tensors.update(tensors_of(os.path.join(directory, entry["name"])))
        self.tables = {table["name"]: table for table in self.manifest.get("tables", [])}

    def variable(self, name):
        variable = next(v for v in self.manifest["variables"] if v["name"] == name)
        return sum((self.tensors[f"variables/{name}/{p}/value"] for p in range(len(variable["partition_starts"]))), [])

    def written_rows(self, name):
        rows, dim = {}, self.tables[name]["dim"]
        for p in range(self.tables[name]["partitions"]):
            values = self.tensors[f"tables/{name}/{p}/values"]
            for i, row in enumerate(self.tensors[f"tables/{name}/{p}/ids"]):
                rows[row] = values[i * dim:(i + 1) * dim]
        return rows


def click_id(field, text, buckets):
    if not text:
        return combine(field, 1 << 32) % buckets
    if len(text) == 8 and all(c in "0123456789abcdefABCDEF" for c in text):
        return combine(field, int(text, 16)) % buckets
    return combine(field, hash_of(text.encode())) % buckets


def predict(directory, buckets, path):
    checkpoint = Checkpoint(directory)
    tables = [(checkpoint.tables[f"wide/ids_{f}"], checkpoint.written_rows(f"wide/ids_{f}")) for f in range(26)]
    weights, bias = checkpoint.variable("wide/numbers"), checkpoint.variable("bias")[0]
    with open(path) as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            logit = bias
            for text, weight in zip(fields[1:14], weights):
                logit += weight * (math.log1p(int(text)) if text and int(text) > 0 else 0)
            for f, (table, rows) in enumerate(tables):
                row = click_id(f, fields[14 + f], buckets)
                logit += (rows[row] if row in rows else initial_row(table, row, 1))[0]
            print(f"{1 / (1 + math.exp(-logit)):.9g}")


def predict_csv(directory, path):
    checkpoint, missing = Checkpoint(directory), 1 << 32
    bias = checkpoint.variable("bias")[0]
    with open(path) as lines:
        next(lines)
        for line in lines:
            age, job, city = line.rstrip("\n").split(",")
            v_job, v_city = (hash_of(text.encode()) if text else missing for text in (job, city))
            bucket = sum(boundary <= float(age) for boundary in (20, 40, 60)) if age else 4
            ids = {"job": combine(7, v_job) % 20, "city": combine(hash_of(b"city"), v_city) % 20, "age_bucket": bucket,
                   "job_city": combine(hash_of(b"job_city"), combine(v_job, v_city)) % 50,
                   "age_job": combine(hash_of(b"age_job"), combine(bucket if age else missing, v_job)) % 50}
            logit = bias
            for column, row in ids.items():
                rows = checkpoint.written_rows(f"wide/{column}")
                logit += (rows[row] if row in rows else initial_row(checkpoint.tables[f"wide/{column}"], row, 1))[0]
            print(f"{1 / (1 + math.exp(-logit)):.9g}")


def compare(directory, path):
    checkpoint, exported = Checkpoint(directory), dict(tensors_of(path))
    written, initial = 0, 0
    for name, table in checkpoint.tables.items():
        dim, rows = table["dim"], checkpoint.written_rows(name)
        for row in range(int(table["rows"])):
            values = rows[row] if row in rows else initial_row(table, row, dim)
            if exported[name][row * dim:(row + 1) * dim] != values:
                sys.exit(f"{name}: row {row} is {exported[name][row * dim:(row + 1) * dim]}, not {values}")
            written, initial = written + (row in rows), initial + (row not in rows)
    for variable in checkpoint.manifest.get("variables", []):
        if exported[variable["name"]] != checkpoint.variable(variable["name"]):
            sys.exit(f"{variable['name']} differs")
    print(f"{written} rows of the checkpoint, {initial} initial ones")


if sys.argv[1] == "predict":
    predict(sys.argv[2], int(sys.argv[3]), sys.argv[4])
elif sys.argv[1] == "predict_csv":
    predict_csv(sys.argv[2], sys.argv[3])
else:
    compare(sys.argv[2], sys.argv[3])
