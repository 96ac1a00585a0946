"""The numbers in the paper, cell by cell, for comparison with ours. Regrets in percent; each value with its standard deviation
over seeds.
"""

from __future__ import annotations

from dffl_studies.running.tables import Value

STATISTICS = ("mean", "median", "p75", "p90", "max")


def _row(*numbers: float) -> dict[str, Value]:
    return {name: Value(*numbers[2 * i : 2 * i + 2]) for i, name in enumerate(STATISTICS)}


AGGREGATE: dict[tuple[str, str], dict[str, Value]] = {
    # Table "aggregate-performance" and, for the oracle rows, "aggregate-performance-app"
    ("knapsack", "local"): _row(1.21, 0.15, 1.10, 0.14, 1.73, 0.20, 2.41, 0.31, 6.34, 1.45),
    ("knapsack", "fedavg"): _row(1.37, 0.18, 0.65, 0.15, 1.83, 0.31, 3.73, 0.52, 11.70, 0.83),
    ("knapsack", "interp-mse"): _row(1.10, 0.14, 0.71, 0.10, 1.37, 0.16, 2.48, 0.30, 10.36, 2.04),
    ("knapsack", "interp-spo"): _row(0.77, 0.12, 0.51, 0.08, 1.04, 0.16, 1.78, 0.29, 6.31, 1.37),
    ("knapsack", "oracle-interp-mse"): _row(1.02, 0.13, 0.64, 0.11, 1.25, 0.18, 2.35, 0.29, 10.28, 2.46),
    ("knapsack", "oracle-interp-spo"): _row(0.68, 0.10, 0.46, 0.08, 0.93, 0.15, 1.53, 0.25, 5.48, 1.60),
    ("portfolio", "local"): _row(11.54, 0.49, 11.29, 0.23, 13.84, 0.51, 17.19, 1.54, 33.57, 3.01),
    ("portfolio", "fedavg"): _row(9.84, 0.32, 7.02, 0.37, 10.76, 0.45, 22.00, 0.96, 31.29, 2.88),
    ("portfolio", "interp-mse"): _row(8.89, 0.18, 7.65, 0.32, 9.87, 0.25, 15.72, 0.61, 25.81, 2.49),
    ("portfolio", "interp-spo"): _row(7.84, 0.26, 6.86, 0.31, 9.46, 0.27, 12.69, 0.55, 21.78, 3.39),
    ("portfolio", "oracle-interp-mse"): _row(8.40, 0.11, 6.85, 0.29, 9.29, 0.34, 15.83, 0.26, 27.97, 1.97),
    ("portfolio", "oracle-interp-spo"): _row(7.13, 0.23, 6.33, 0.26, 8.76, 0.26, 11.69, 0.46, 20.33, 2.53),
}


def _group(*numbers: float) -> dict[str, Value]:
    names = ("mean", "median", "mean lambda", "median lambda")
    return {name: Value(*numbers[2 * i : 2 * i + 2]) for i, name in enumerate(names[: len(numbers) // 2])}


BY_SIZE: dict[tuple[str, str, str], dict[str, Value]] = {
    # Table "data-rich-scarce"; its rows of Interp-DFFL(SPO+) are also table "interp-spo-summary"
    ("knapsack", "data-rich", "local"): _group(0.45, 0.06, 0.42, 0.04),
    ("knapsack", "data-rich", "fedavg"): _group(1.29, 0.23, 0.52, 0.07),
    ("knapsack", "data-rich", "interp-mse"): _group(0.88, 0.13, 0.46, 0.09, 0.86, 0.06, 0.95, 0.05),
    ("knapsack", "data-rich", "interp-spo"): _group(0.38, 0.04, 0.34, 0.05, 0.43, 0.03, 0.41, 0.04),
    ("knapsack", "data-poor", "local"): _group(1.95, 0.41, 1.89, 0.31),
    ("knapsack", "data-poor", "fedavg"): _group(1.46, 0.37, 0.64, 0.30),
    ("knapsack", "data-poor", "interp-mse"): _group(1.22, 0.30, 0.90, 0.23, 0.72, 0.05, 0.78, 0.06),
    ("knapsack", "data-poor", "interp-spo"): _group(0.99, 0.28, 0.62, 0.23, 0.67, 0.07, 0.78, 0.08),
    ("portfolio", "data-rich", "local"): _group(6.09, 0.13, 5.95, 0.09),
    ("portfolio", "data-rich", "fedavg"): _group(8.81, 0.51, 5.14, 0.23),
    ("portfolio", "data-rich", "interp-mse"): _group(6.32, 0.33, 5.91, 0.19, 0.73, 0.06, 0.83, 0.08),
    ("portfolio", "data-rich", "interp-spo"): _group(5.51, 0.15, 5.28, 0.19, 0.67, 0.03, 0.72, 0.04),
    ("portfolio", "data-poor", "local"): _group(16.46, 1.47, 15.49, 1.41),
    ("portfolio", "data-poor", "fedavg"): _group(9.88, 0.59, 5.98, 0.54),
    ("portfolio", "data-poor", "interp-mse"): _group(9.39, 0.59, 8.10, 0.59, 0.84, 0.06, 0.88, 0.08),
    ("portfolio", "data-poor", "interp-spo"): _group(8.43, 0.39, 6.84, 0.45, 0.89, 0.02, 0.93, 0.03),
}

CORE_HOURS = 800.0
"""The cost of the paper's own run."""
