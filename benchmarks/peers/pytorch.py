"""Plain PyTorch: batched closed-form knapsacks, a training step of all clients and rounds of federated averaging.

This is the strongest peer, as it has no solver and no framework: what a careful user writes by hand. Clients lie on a
leading axis and go through batched matrix products; `--layout loop` trains them one after another with the same code.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from benchmarks.peers import workload as work

if __name__ == "__main__":
    work.require("torch")

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional


def knapsack(profits: Tensor, weights: Tensor) -> Tensor:
    """Optimal fractional knapsacks of any batch: sort by ratio, add up the weights, clip what is left of the budget."""
    ratio, order = torch.sort(profits / weights, dim=-1, descending=True)
    sizes = weights.expand_as(profits).gather(-1, order)
    room = work.BUDGET - sizes.cumsum(-1) + sizes
    chosen = (room / sizes).clamp_(0, 1).mul_(ratio > 0)
    return torch.empty_like(chosen).scatter_(-1, order, chosen)


class SPOPlus(Function):  # type: ignore[misc]
    """SPO+ of maximised profits, an instance each: (2 p - c) w(2 p - c) - 2 p w(c) + z(c)."""

    @staticmethod
    def forward(ctx: Any, predicted: Tensor, *known: Tensor) -> Tensor:
        profits, solutions, objectives, weights = known
        chosen = knapsack(2 * predicted - profits, weights)
        difference = 2 * (chosen - solutions)
        ctx.save_for_backward(difference)
        # 2 p (w - w*) - c w + z*, which reuses what the gradient needs
        return (predicted * difference).sum(-1) - (profits * chosen).sum(-1) + objectives

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (difference,) = ctx.saved_tensors
        return gradient.unsqueeze(-1) * difference, None, None, None, None


class Clients:
    """Some clients' data and one network for each of them, as stacked tensors."""

    def __init__(self, data: work.Federation, which: slice) -> None:
        samples = data.features, data.profits, data.solutions, data.objectives
        self.features, self.profits, self.solutions, self.objectives = (torch.tensor(a[which]) for a in samples)
        self.weights = torch.tensor(data.weights[which, None])
        self.count, self.samples = self.objectives.shape
        self.rows = torch.arange(self.count)[:, None]

    def start(self, parameters: Sequence[np.ndarray]) -> None:
        """Give every client its own copy of the parameters and a fresh Adam (fused: the fastest here)."""
        self.parameters = [torch.tensor(p).expand(self.count, *p.shape).clone().requires_grad_() for p in parameters]
        self.adam = torch.optim.Adam(self.parameters, lr=work.LEARNING_RATE, fused=True)

    def batches(self, orders: Tensor) -> Iterator[list[Tensor]]:
        """Every client's samples in its order (clients, samples), a batch at a time; the last may be smaller."""
        for chosen in orders.split(work.LOCAL_BATCH, dim=1):
            yield [t[self.rows, chosen] for t in (self.features, self.profits, self.solutions, self.objectives)]

    def step(self, features: Tensor, *known: Tensor) -> None:
        """A step of Adam of every client on a batch of its own."""
        first, first_bias, second, second_bias = self.parameters
        hidden = functional.relu(torch.baddbmm(first_bias, features, first))
        predicted = torch.baddbmm(second_bias, hidden, second)
        self.adam.zero_grad()
        # the clients' networks are separate, so the sum of their means gives each its own gradient
        SPOPlus.apply(predicted, *known, self.weights).mean(-1).sum().backward()
        self.adam.step()

    def epoch(self, orders: Tensor) -> None:
        """One pass over every client's samples."""
        for batch in self.batches(orders):
            self.step(*batch)


def groups(samples: int, layout: str) -> list[Clients]:
    """All clients in one stack, or a stack of one for each."""
    data = work.federation(samples)
    if layout == "bmm":
        return [Clients(data, slice(None))]
    return [Clients(data, slice(i, i + 1)) for i in range(work.CLIENTS)]


def average_round(stacks: list[Clients], parameters: list[np.ndarray], turn: int) -> list[np.ndarray]:
    """A round of FedAvg: everyone's local epoch from the same parameters, then the mean by number of samples."""
    client = 0
    for stack in stacks:
        stack.start(parameters)
        orders = [work.epoch_order(i, turn) for i in range(client, client + stack.count)]
        stack.epoch(torch.from_numpy(np.stack(orders)))
        client += stack.count
    shares = np.concatenate([np.full(s.count, s.samples, np.float32) for s in stacks])
    shares /= shares.sum()
    trained = (torch.cat([s.parameters[k].detach() for s in stacks]).numpy() for k in range(len(parameters)))
    return [np.tensordot(shares, p, 1) for p in trained]


def run_spo(_: str) -> dict[str, Any]:
    """SPO+ and its gradient a batch, compared with the reference; there are no clients and so no layout."""
    data = work.instances()
    batches = [torch.tensor(p, requires_grad=True) for p in data.predicted]
    turns = itertools.cycle(batches)
    known = [torch.tensor(a) for a in (data.profits, data.solutions, data.objectives, data.weights)]

    def step() -> None:
        predicted = next(turns)
        predicted.grad = None
        SPOPlus.apply(predicted, *known).sum().backward()

    seconds, repeats = work.measure(step)
    error = work.gradient_error(data, [p.grad.numpy() for p in batches])
    return {"instances_per_second": work.BATCH / seconds, "repeats": repeats, "gradient_error": error}


def run_step(layout: str) -> dict[str, Any]:
    """One step of all clients."""
    samples = work.BATCHES * work.LOCAL_BATCH
    stacks = groups(samples, layout)
    turns = []
    for stack in stacks:
        stack.start(work.initial_parameters())
        turns.append(itertools.cycle(list(stack.batches(torch.arange(samples).expand(stack.count, -1)))))

    def step() -> None:
        for stack, turn in zip(stacks, turns, strict=True):
            stack.step(*next(turn))

    seconds, repeats = work.measure(step)
    return {"layout": layout, "milliseconds_per_step": 1e3 * seconds, "repeats": repeats}


def run_rounds(layout: str) -> dict[str, Any]:
    """Rounds of federated averaging in this process."""
    stacks = groups(work.SAMPLES, layout)
    parameters, turn = work.initial_parameters(), 0

    def play() -> None:
        nonlocal parameters, turn
        parameters, turn = average_round(stacks, parameters, turn), turn + 1

    seconds, repeats = work.measure(play)
    return {"layout": layout, "rounds_per_second": 1 / seconds, "repeats": repeats}


CASES: dict[str, Callable[[str], dict[str, Any]]] = {"spo": run_spo, "step": run_step, "rounds": run_rounds}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's threads")
    parser.add_argument("--layout", choices=("bmm", "loop"), default="bmm", help="clients at once or one by one")
    args = parser.parse_args()
    with work.reporting() as report:
        torch.set_num_threads(args.threads)
        head = {"peer": f"PyTorch {version('torch')}", "case": args.case, "threads": args.threads}
        report(head | CASES[args.case](args.layout))


if __name__ == "__main__":
    main()
