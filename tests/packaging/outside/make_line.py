"""Writes the rows of line.yaml: make_line.py FILE.csv"""
import random
import sys

random.seed(1)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write("x,y\n")
    for _ in range(5000):
        x = random.uniform(-1, 1)
        file.write(f"{x:.5f},{3 * x + 1:.5f}\n")
