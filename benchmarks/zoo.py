# SPDX-License-Identifier: Apache-2.0
"""Which architectures can be trained privately, and are the clipped sums right? Beside the four modes of opacus.

    python benchmarks/zoo.py                     # all, a quarter of an hour; the environment is made once
    python benchmarks/zoo.py --only BERT         # architectures whose name matches
    python benchmarks/zoo.py --write             # and keep the table in benchmarks/RESULTS.md

A model counts if the norm of each record's gradient, and the sum of the clipped gradients, are those that autograd
finds for one record at a time, within 1e-3 of the largest, in float64. Dropout and stochastic depth are off for this comparison;
`discreet` also trains two steps with them on.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "peers"), str(HERE / "training"), str(HERE.parent / "src")]
MODES = ["discreet", "hooks", "functorch", "expanded weights", "ghost"]


def main() -> None:
    """Run inside the environment, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        ask(options.only)
        return
    import environments
    import report

    command = [str(environments.python_of("zoo")), __file__, "--inside", "--only", options.only]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    lines = [*report.heading(f"python benchmarks/zoo.py {options.only}".strip()), "", *table(rows)]
    print("\n".join(lines))
    if options.write:
        report.replace_section(HERE / "RESULTS.md", "Architectures", lines)


def table(rows: list[dict[str, str]]) -> list[str]:
    """A line for each architecture, and how many each way can train."""
    lines = ["| architecture | " + " | ".join(MODES) + " |", "|---|" + "---|" * len(MODES)]
    lines += [f"| {row['name']} | " + " | ".join(row[mode] for mode in MODES) + " |" for row in rows]
    right = {mode: sum(row[mode] == "yes" for row in rows) for mode in MODES}
    return [*lines, f"| **{len(rows)}** | " + " | ".join(f"**{right[mode]}**" for mode in MODES) + " |"]


def ask(only: str) -> None:
    """Every architecture in every way, a line of JSON for each."""
    import warnings

    import torch
    import zoo as models

    warnings.simplefilter("ignore")
    models.hf.logging.set_verbosity_error()
    torch.set_num_threads(1)
    for name, make in {**models.HUGGING_FACE, **models.TORCHVISION}.items():
        if re.search(only, name):
            answers = {mode: _verdict(WAYS[mode], make) for mode in MODES}
            print(json.dumps({"name": name, **answers}), flush=True)


def _verdict(way: Callable[..., str], make: Callable[[], object]) -> str:
    import torch

    torch.manual_seed(0)
    model, kind = make()
    try:
        return way(model.double(), kind)
    except Exception as failure:  # noqa: BLE001 - a mode that cannot is a row of the table
        return f"{type(failure).__name__}"


def _truth(model, kind, x, y, clip=None):
    """Norms of the records, and the sum of their clipped gradients, by autograd for one record at a time."""
    import torch
    import zoo as models

    parameters = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for i in range(len(x)):
        loss = models.losses(model, kind, x[i : i + 1], y[i : i + 1]).sum()
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        rows.append([torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)])
    norms = torch.stack([torch.stack([g.norm() for g in row]).norm() for row in rows])
    clip = float(norms.median()) if clip is None else clip
    factors = (clip / norms).clamp(max=1)
    sums = [sum(f * g for f, g in zip(factors, column, strict=True)) for column in zip(*rows, strict=True)]
    return norms, sums, clip


def _is_right(norms, sums, true_norms, true_sums) -> bool:
    largest = max(float(s.abs().max()) for s in true_sums)
    near = all(float((a - b).abs().max()) <= 1e-3 * largest for a, b in zip(sums, true_sums, strict=True))
    return near and bool(((norms - true_norms).abs() <= 1e-3 * true_norms.max()).all())


def _discreet(model, kind) -> str:
    import torch
    import zoo as models

    from discreet.errors import RefusedTraining
    from discreet.learn.torch import guards, private
    from discreet.learn.torch.clip import Clipper

    class Losses(torch.nn.Module):
        """What the loop does, as a model of all that the guards shall test."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x, y):
            return models.losses(self.model, kind, x, y)

    x, y = models.records(kind, 3)
    whole = Losses().eval()
    clipper = Clipper(whole)
    try:
        guards.check(clipper, (x, y))
        norms, sums, clip = _truth(model, kind, x, y)
        with clipper.watch():
            found = clipper.clipped_sum(whole(x, y), clip=clip)
        mine = [found.gradients[p] for p in clipper.parameters]
        if not _is_right(found.norms, mine, norms, sums):
            return "WRONG"
        clipper.close()
        model.train()
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-3)
        run = private(model, optimizer, models.records(kind, 6), noise=1.0, steps=2, batch=3, size=6)
        for a, b in run:
            run.backward(models.losses(model, kind, a, b))
            optimizer.step()
    except RefusedTraining as refusal:
        return f"refused: {str(refusal).splitlines()[0]}"
    return "yes" if run.tested else "untested"


def _opacus(mode: str) -> Callable[..., str]:
    def way(model, kind) -> str:
        import torch
        import zoo as models
        from opacus import grad_sample

        x, y = models.records(kind, 3)
        model.eval()
        norms, sums, clip = _truth(model, kind, x, y)
        model.train()  # some modes demand it; what is random is switched off one by one
        for module in model.modules():
            if hasattr(module, "inplace"):  # its hooks do not bear layers that write into their input
                module.inplace = False
            if "drop" in type(module).__name__.lower() or isinstance(module, torch.nn.MultiheadAttention):
                module.eval()
        parameters = [p for p in model.parameters() if p.requires_grad]
        if mode == "ghost":
            return _ghost(model, kind, x, y, (norms, sums, clip))
        kinds = {
            "hooks": (grad_sample.GradSampleModule, {}),
            "functorch": (grad_sample.GradSampleModule, {"force_functorch": True}),
            "expanded weights": (grad_sample.GradSampleModuleExpandedWeights, {}),
        }
        wrapper, settings = kinds[mode]
        wrapped = wrapper(model, loss_reduction="sum", **settings)
        models.losses(wrapped, kind, x, y).sum().backward()
        nothing = [torch.zeros(len(x), *p.shape) for p in parameters]
        measured = [getattr(p, "grad_sample", None) for p in parameters]
        rows = [zero if g is None else g for g, zero in zip(measured, nothing, strict=True)]
        found = torch.stack([g.flatten(1).norm(dim=1) for g in rows]).norm(dim=0)
        factors = (clip / found).clamp(max=1)
        mine = [torch.einsum("n,n...->...", factors, g) for g in rows]
        return "yes" if _is_right(found, mine, norms, sums) else "WRONG"

    return way


def _ghost(model, kind, x, y, truth) -> str:
    import torch
    import zoo as models
    from opacus.grad_sample import GradSampleModuleFastGradientClipping

    norms, sums, clip = truth
    parameters = [p for p in model.parameters() if p.requires_grad]
    wrapped = GradSampleModuleFastGradientClipping(
        model, max_grad_norm=clip, use_ghost_clipping=True, loss_reduction="sum"
    )
    losses = models.losses(wrapped, kind, x, y)
    losses.sum().backward(retain_graph=True)
    found = wrapped.get_norm_sample().detach()
    for parameter in parameters:
        parameter.grad = None
    wrapped.disable_hooks()
    (losses * (clip / found).clamp(max=1)).sum().backward()
    mine = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    return "yes" if _is_right(found, mine, norms, sums) else "WRONG"


WAYS = {"discreet": _discreet, **{mode: _opacus(mode) for mode in MODES[1:]}}

if __name__ == "__main__":
    main()
