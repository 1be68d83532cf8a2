#!/usr/bin/env python3
"""Prints what a checkpoint holds, as JSON. Written from docs/checkpoint_format.md alone; standard library only.

  read_checkpoint.py DIRECTORY    {"variables": {NAME: [...]}, "tables": {NAME: {ID: [...]}}, "applied": [[f, part, b, e]...]}
"""
import json
import os
import struct
import sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def read_file(directory, entry):
    with open(os.path.join(directory, entry["name"]), "rb") as file:
        data = file.read()
    if len(data) != int(entry["bytes"]) or crc32c(data) != entry["crc32c"]:
        sys.exit(entry["name"] + " is damaged")
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, tensor in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            letter = {"F32": "f", "I32": "i", "I64": "q"}[tensor["dtype"]]
            first, last = tensor["data_offsets"]
            tensors[name] = [value for value, in struct.iter_unpack("<" + letter, data[begin + first:begin + last])]
    return tensors


def main(directory):
    with open(os.path.join(directory, "manifest.json")) as file:
        manifest = json.load(file)
    assert manifest["format_version"] == 1
    files = [read_file(directory, entry) for entry in manifest["files"]]
    everything = {name: values for tensors in files for name, values in tensors.items()}
    variables, tables = {}, {}
    for variable in manifest.get("variables", []):
        name, partitions = variable["name"], range(len(variable["partition_starts"]))
        variables[name] = sum((everything[f"variables/{name}/{p}/value"] for p in partitions), [])
    for table in manifest.get("tables", []):
        name, dim, rows = table["name"], table["dim"], {}
        for p in range(table["partitions"]):
            values = everything[f"tables/{name}/{p}/values"]
            for i, row in enumerate(everything[f"tables/{name}/{p}/ids"]):
                rows[row] = values[i * dim:(i + 1) * dim]
        tables[name] = rows
    applied = [steps[i:i + 4] for steps in (file["memory/0/steps"] for file in files) for i in range(0, len(steps), 4)]
    json.dump({"variables": variables, "tables": tables, "applied": applied}, sys.stdout)


main(sys.argv[1])
