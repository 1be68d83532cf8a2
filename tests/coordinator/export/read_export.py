#!/usr/bin/env python3
"""Reads what `coordinator export` wrote with NumPy, and prints "NAME DTYPE SHAPE CRC32" for each array, sorted by name.
The CRC-32 is of the array's bytes, as zlib computes it. Exit code 77: there is no NumPy.

Usage: read_export.py npy FOLDER | safetensors FILE
"""
import json
import os
import struct
import sys
import zlib

try:
    import numpy
except ImportError:
    print("python3-numpy is not installed")
    sys.exit(77)

TYPES = {"F32": "<f4", "I32": "<i4", "I64": "<i8"}


def npy_files(folder):
    for at, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(at, file)
            yield os.path.relpath(path, folder)[:-len(".npy")], numpy.load(path, allow_pickle=False)


def tensors(path):
    whole = numpy.memmap(path, dtype=numpy.uint8, mode="r")
    begin = 8 + struct.unpack("<Q", whole[:8].tobytes())[0]
    for name, entry in json.loads(whole[8:begin].tobytes()).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            array = numpy.frombuffer(whole[begin + first:begin + last].tobytes(), dtype=TYPES[entry["dtype"]])
            yield name, array.reshape(entry["shape"])


arrays = dict({"npy": npy_files, "safetensors": tensors}[sys.argv[1]](sys.argv[2]))
for name in sorted(arrays):
    array = arrays[name]
    print(name, array.dtype.str, str(list(array.shape)).replace(" ", ""), zlib.crc32(array.tobytes()))
