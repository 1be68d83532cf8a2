"""bench/packing.py over hand-made traces: which times it takes for those between functions, and what it makes of them.

Run: python3 tests/conformance/packing_test.py
"""
import copy
import importlib.util
import os
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPEC = importlib.util.spec_from_file_location("packing", os.path.join(ROOT, "bench", "packing.py"))
packing = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(packing)


def spans_of(functions, steps, wait=10, compute=80, result=5, idle=15, begins=1):
    """(name, begin, end) of a worker's functions in µs: each step waits for records and computes, and after each one
    its result is handed over; then there is no function for `idle` (a list: before each), and a function takes `begins`
    to begin."""
    idle = idle if isinstance(idle, list) else [idle] * functions
    spans, now = [], 1000
    for i in range(functions):
        if i > 0:
            spans.append(("worker.idle", now, now + idle[i]))
            now += idle[i] + begins
        for _ in range(steps):
            spans.append(("worker.data_wait", now, now + wait))
            spans.append(("step.pull", now + wait, now + wait + 1))  # within the step, so written down before it
            spans.append(("worker.step", now + wait, now + wait + compute))
            now += wait + compute + result
    return spans


def trace_of(*workers):
    events = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "coordinator"}},
              {"ph": "X", "pid": 1, "tid": 1, "name": "train", "ts": 0, "dur": 1e9},
              {"ph": "b", "pid": 1, "tid": 0, "name": "train_step on worker 0", "ts": 5}]
    for pid, spans in enumerate(workers, 2):
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": f"worker {pid - 2}"}})
        events += [{"ph": "X", "pid": pid, "tid": 1, "name": name, "ts": begin, "dur": end - begin}
                   for name, begin, end in spans]
    return {"traceEvents": events}


def steps_of(spans):
    return [function.steps for function in packing.functions_of([span for span in spans if span[0] in packing.SPANS])]


class FunctionsTest(unittest.TestCase):
    def test_steps_begin_with_their_records_and_idle_times_part_functions(self):
        self.assertEqual(steps_of(spans_of(2, 2)), [[(1000, 1090), (1095, 1185)], [(1206, 1296), (1301, 1391)]])

    def test_a_function_that_reads_nothing(self):
        self.assertEqual(steps_of([("worker.step", 3, 5), ("worker.idle", 6, 7), ("worker.step", 8, 9)]),
                         [[(3, 5)], [(8, 9)]])

    def test_a_function_without_a_step_is_none(self):
        spans = [("worker.step", 0, 5), ("worker.idle", 6, 7), ("worker.data_wait", 7, 8), ("worker.idle", 9, 12),
                 ("worker.data_wait", 12, 13), ("worker.step", 13, 15)]
        self.assertEqual(steps_of(spans), [[(0, 5)], [(12, 15)]])
        self.assertEqual([function.idle for function in packing.functions_of(spans)], [0, 4])


class MeasureTest(unittest.TestCase):
    def test_one_worker(self):
        # A function takes 3 steps of 95 µs and 16 until the next one begins; 21 of these are between functions.
        found = packing.measure(trace_of(spans_of(100, 3)), batch=32)
        self.assertAlmostEqual(found["gap"], 21 / 301)
        self.assertAlmostEqual(found["idle"], 15 / 301)
        self.assertEqual(found["clock_error_us"], 0)
        self.assertAlmostEqual(found["gap_us_p50"], 21)
        self.assertAlmostEqual(found["gap_us_p99"], 21)
        self.assertAlmostEqual(found["between_steps_us_p50"], 5)
        self.assertAlmostEqual(found["ms_a_step"], 0.09)
        self.assertAlmostEqual(found["steps_a_function"], 3)
        self.assertAlmostEqual(found["functions_per_second"], 1e6 / 301)
        self.assertAlmostEqual(found["samples_per_second"], 32 * 3e6 / 301)

    def test_workers_count_by_their_time_and_their_rates_add_up(self):
        found = packing.measure(trace_of(spans_of(100, 3), spans_of(301, 1, wait=0, compute=74, idle=20)), batch=1)
        # The second worker's functions: 74 µs of a step and 26 between; both run for about the same time.
        self.assertAlmostEqual(found["functions_per_second"], 1e6 / 301 + 1e6 / 100)
        self.assertAlmostEqual(found["samples_per_second"], 3e6 / 301 + 1e6 / 100)
        self.assertAlmostEqual(found["gap"], (21 / 301 + 26 / 100) / 2, places=2)

    def test_one_step_functions_have_no_time_between_steps(self):
        self.assertIsNone(packing.measure(trace_of(spans_of(100, 1)), batch=1)["between_steps_us_p50"])

    def test_only_the_middle_counts(self):
        # At both ends 11 functions with waits of a millisecond, which are 14% of the time each.
        idle = [1000 if i < 12 or i >= 500 else 15 for i in range(511)]
        found = packing.measure(trace_of(spans_of(511, 1, idle=idle)), batch=1)
        self.assertAlmostEqual(found["gap_us_p99"], 21)
        self.assertAlmostEqual(found["gap"], 21 / 111)

    def test_times_that_go_back_are_wrong_by_no_more_than_that(self):
        # Between the wait for records of a function's first step and that step the coordinator asks for the spans, and
        # what comes later is mapped 300 µs earlier: the step is before the time without a function then.
        spans = [span for span in spans_of(60, 2, compute=50000) if span[0] in packing.SPANS]
        calm = packing.measure(trace_of(spans), batch=1)
        cut = next(i for i in range(len(spans) // 2, len(spans)) if spans[i - 2][0] == "worker.idle")
        self.assertEqual(spans[cut][0], "worker.step")
        back = spans[:cut] + [(name, begin - 300, end - 300) for name, begin, end in spans[cut:]]
        found = packing.measure(trace_of(back), batch=1)
        self.assertAlmostEqual(found["clock_error_us"], 300)
        self.assertEqual(found["functions"], calm["functions"])
        self.assertAlmostEqual(found["steps_a_function"], 2)
        self.assertAlmostEqual(found["idle"], calm["idle"], places=5)
        self.assertAlmostEqual(found["gap"], calm["gap"], places=5)

    def test_too_short_to_say(self):
        self.assertIsNone(packing.measure(trace_of(spans_of(3, 2)), batch=1))
        self.assertIsNone(packing.measure(trace_of([]), batch=1))

    def test_lost_spans_are_an_error(self):
        trace = trace_of(spans_of(100, 1))
        trace["traceEvents"][3]["args"]["name"] = "worker 0 (7 spans lost)"
        with self.assertRaisesRegex(SystemExit, "7 spans lost"):
            packing.measure(trace, batch=1)


class SummaryTest(unittest.TestCase):
    RUN = {"gap": 0.02, "gap_us_p50": 20, "gap_us_p99": 90, "between_steps_us_p50": None, "idle": 0.01, "ms_a_step": 0.5,
           "steps_a_function": 1, "functions_per_second": 4000, "samples_per_second": 64000, "cpu_seconds": 9}

    def rounds(self, gaps, speeds=(96000, 64000, 80000)):
        return [{("quick", "1"): dict(self.RUN), ("quick", "auto, 0.01"): dict(self.RUN, gap=gap, samples_per_second=speed)}
                for gap, speed in zip(gaps, speeds)]

    def test_medians_and_ratios(self):
        row = packing.summarize(self.rounds((0.004, 0.03, 0.009)))["quick", "auto, 0.01"]
        self.assertEqual((row["gap"], row["gap_range"], row["speedup"]), (0.009, [0.004, 0.03], 1.25))
        self.assertNotIn("between_steps_us_p50", row)

    def test_the_ratio_is_to_the_same_round(self):
        rounds = self.rounds((0.001,) * 3, (100, 300, 900))
        for each, speed in zip(rounds, (100, 200, 300)):
            each["quick", "1"]["samples_per_second"] = speed
        self.assertEqual(packing.summarize(rounds)["quick", "auto, 0.01"]["speedup"], 1.5)

    def test_what_is_promised(self):
        def kept(*gaps):
            return packing.summarize(self.rounds(gaps))["quick", "auto, 0.01"]["kept"]
        self.assertTrue(kept(0.01, 0.01, 0.02))
        self.assertFalse(kept(0.011, 0.011, 0.001))
        self.assertTrue(packing.summarize(self.rounds((0.5,)))["quick", "1"]["kept"], "nothing is promised")

    def test_table(self):
        rounds = self.rounds((0.004, 0.03, 0.009))
        lines = packing.table(packing.summarize(copy.deepcopy(rounds))).split("\n")
        self.assertEqual(len({line.count("|") for line in lines}), 1, lines)
        self.assertEqual(lines[3], "| quick | auto, 0.01 | 0.50 | 1.0 | 0.90% (0.40% to 3.00%) | 1.00% | 20, 90 µs | 4,000 "
                                   "| 80,000 | 1.25 | 9.0 s |")


if __name__ == "__main__":
    unittest.main()
