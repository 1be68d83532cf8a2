#!/usr/bin/env python3
"""Prints what a checkpoint holds, as JSON: {"variables": {NAME: [...]}, "tables": {NAME: {ID: [...]}},
"applied": [[function, part, begin, end], ...]}. Written from docs/checkpoint_format.md alone; standard library only."""
import json
import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def tensors_of(path, size, checksum):
    with open(path, "rb") as file:
        data = file.read()
    if len(data) != size or crc32c(data) != checksum:
        sys.exit(path + " is damaged")
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    for name, tensor in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            letter = {"F32": "f", "I32": "i", "I64": "q"}[tensor["dtype"]]
            first, last = tensor["data_offsets"]
            yield name, [value for value, in struct.iter_unpack("<" + letter, data[begin + first:begin + last])]


directory = sys.argv[1]
with open(os.path.join(directory, "manifest.json")) as file:
    manifest = json.load(file)
assert manifest["format_version"] == 1
tensors, variables, tables, applied = {}, {}, {}, []
for entry in manifest["files"]:
    tensors.update(tensors_of(os.path.join(directory, entry["name"]), int(entry["bytes"]), entry["crc32c"]))
    steps = tensors["memory/0/steps"]  # each file has its own
    applied += [steps[i:i + 4] for i in range(0, len(steps), 4)]
for variable in manifest.get("variables", []):
    name, partitions = variable["name"], range(len(variable["partition_starts"]))
    variables[name] = sum((tensors[f"variables/{name}/{p}/value"] for p in partitions), [])
for table in manifest.get("tables", []):
    name, dim = table["name"], table["dim"]
    tables[name] = {}
    for p in range(table["partitions"]):
        ids, values = tensors[f"tables/{name}/{p}/ids"], tensors[f"tables/{name}/{p}/values"]
        tables[name].update({row: values[i * dim:(i + 1) * dim] for i, row in enumerate(ids)})
json.dump({"variables": variables, "tables": tables, "applied": applied}, sys.stdout)
