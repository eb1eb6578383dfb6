"""Physics-informed networks: tanh perceptrons that solve equations at points, full batch.

Each is judged by the loss that it is trained on; "error", relative to the known solution, and
"arrived" tell whether that is a solution.
"""

from __future__ import annotations

from hvadam_bench.tasks._spec import Settings, Task, family, scales

_task = family(__name__, metric="loss", smallest=1.25)


def _pinn(name: str, title: str, laptop: Settings, smoke: Settings, paper: Settings) -> Task:
    """Return a task with a published protocol, given what its settings add to those of all.

    At "paper" scale it is that of "Challenges in Training PINNs" (arXiv:2402.01868). At "laptop"
    scale there are fewer points, a smaller network and an easier equation, which Adam with a rate
    of 0.01 solves in some thousand steps. Float32 at both, as published; losses stay far above its
    rounding.
    """
    usual = {
        **{"grid": [65, 51], "inside": 300, "width": 32, "layers": 3},
        **{"steps": 4000, "warmup": 0.02, "schedule": "cosine", "dtype": "float32"},
        **{"batch": None, "arrived_below": 0.1},
    }
    small = {"grid": [9, 7], "inside": 20, "width": 8, "layers": 2, "steps": 60}
    published = {
        **{"grid": [257, 101], "inside": 10_000, "width": 200},
        **{"steps": 41_000, "warmup": 0.0, "schedule": "constant"},
    }
    given = () if name == "pinn_burgers" else (name.removeprefix("pinn_"),)
    return _task(
        name,
        f"Physics-informed network for {title}",
        "problems.pinn" if given else "problems",
        *given,
        scales=scales({**usual, **laptop}, {**small, **smoke}, {**published, **paper}),
        evaluations=30,
    )


TASKS = [
    # Made to compare candidates for a step (decision 32); no paper has it at this size.
    _task(
        "heat_pinn",
        "Physics-informed network for the heat equation",
        scales=scales(
            {"inside": 144, "edge": 25, "width": 16, "layers": 3, "steps": 1000, "warmup": 0.02},
            {"inside": 20, "edge": 5, "width": 8, "layers": 2, "steps": 60},
        ),
        evaluations=5,
    ),
    # With β of 15 and 20 Adam did not solve it at laptop scale, for one seed each.
    _pinn("pinn_convection", "convection", {"speed": 10.0}, {"speed": 1.0}, {"speed": 40.0}),
    # With ρ of 5 none of four first tries did, and three of them fell to u = 0.
    _pinn("pinn_reaction", "a reaction", {"rate": 3.0}, {"rate": 1.0}, {"rate": 5.0}),
    # With c of 2 Adam did not solve it, for one seed.
    _pinn(
        "pinn_wave",
        "a wave",
        {"speed": 1.0, "overtone": 2, "inside": 200, "steps": 5000},
        {},
        {"speed": 2.0, "overtone": 5},
    ),
    # At "paper" scale it is DeepXDE's example instead. At "laptop" scale ν is 0.05/π, so that fewer
    # points see the shock; in float64, as later work on this equation has it (arXiv:2501.16371).
    _pinn(
        "pinn_burgers",
        "Burgers' equation",
        {"viscosity": 0.05, "start": 40, "ends": 40, "width": 20, "dtype": "float64"},
        {"viscosity": 0.5, "start": 8, "ends": 8},
        {
            **{"viscosity": 0.01, "start": 160, "ends": 80, "dtype": "float32"},
            **{"inside": 2540, "width": 20, "steps": 15_000},
        },
    ),
]
