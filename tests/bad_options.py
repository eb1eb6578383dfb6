"""Options that each contender must refuse, with the message that it must refuse them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class BadCase(NamedTuple):
    """Options that a contender must refuse, with a message that matches."""

    options: Mapping[str, Any]
    match: str


# What several refuse alike, by the option or the place in it: the value, and the rule.
USUAL: Mapping[str, tuple[Any, str]] = {
    "lr": (-1.0, "lr must be >= 0 and finite, got -1"),
    "betas[0]": ((1.0, 0.999), r"betas\[0\] must be in \[0, 1\), got 1"),
    "betas[1]": ((0.9, 1.0), r"betas\[1\] must be in \[0, 1\), got 1"),
    "eps": (0.0, "eps must be > 0 and finite, got 0"),
    "momentum": (1.0, r"momentum must be in \[0, 1\), got 1"),
    "weight_decay": (-1.0, "weight_decay must be >= 0"),
}
ADAM = ("lr", "betas[0]", "betas[1]", "eps", "weight_decay")


def usual(who: str, *names: str) -> list[BadCase]:
    """Return what one of ours refuses as others do."""
    cases = ((name.partition("[")[0], *USUAL[name]) for name in names)
    return [BadCase({option: value}, f"{who}: {rule}") for option, value, rule in cases]


def wrapper(who: str) -> list[BadCase]:
    """Return what the optimizers around another one refuse alike."""
    return [
        *usual(who, "lr", "momentum", "betas[1]", "eps", "weight_decay"),
        BadCase({"inner": "lbfgs"}, f"{who}: inner must be one of 'sgd', 'adam', got 'lbfgs'"),
    ]


HVADAM = (
    BadCase({"lr": -1.0}, "HVAdam: lr must be >= 0 and finite, got -1"),
    BadCase({"betas": (1.2, 0.999)}, r"HVAdam: betas\[0\] must be in \[0, 1\), got 1.2"),
    BadCase({"betas": (0.9, 1.0)}, r"HVAdam: betas\[1\] must be in \[0, 1\), got 1"),
    BadCase({"eps": 0.0}, "HVAdam: eps must be finite and at least"),
    BadCase({"gamma": -1.0}, "HVAdam: gamma must be >= 0"),
    BadCase({"weight_decay": -1.0}, "HVAdam: weight_decay must be >= 0"),
    BadCase({"hidden_gain": "cubic"}, "HVAdam: hidden_gain must be one of"),
)
SWITCH = (
    BadCase({"switch": 1.5}, r"ThenLBFGS: switch must be in \[0, 1\], got 1.5"),
    BadCase({"horizon": 0}, "ThenLBFGS: horizon must be a whole number >= 1, got 0"),
    BadCase({"history_size": 0}, "LBFGS: history_size must be a whole number >= 1, got 0"),
    BadCase({"max_eval": 0.5}, "LBFGS: max_eval must be a whole number >= 1, got 0.5"),
)

TORCH = (
    BadCase({"lr": -1.0}, "Invalid learning rate"),
    BadCase({"betas": (1.0, 0.999)}, "Invalid beta parameter at index 0"),
    BadCase({"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1"),
    BadCase({"eps": -1.0}, "Invalid epsilon"),
    BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
)

BAD: Mapping[str, Sequence[BadCase]] = {
    "adabelief": [
        *usual("AdaBelief", *ADAM),
        BadCase(
            {"weight_decay_mode": "l2"}, "AdaBelief: weight_decay_mode must be one of 'coupled'"
        ),
        BadCase({"rectify": "yes"}, "AdaBelief: rectify must be one of True, False, got 'yes'"),
    ],
    "adabound": [
        *usual("AdaBound", *ADAM[1:]),
        BadCase({"lr": -1.0}, "AdaBound: lr must be > 0 and finite, got -1"),
        BadCase({"final_lr": -1.0}, "AdaBound: final_lr must be >= 0"),
        BadCase({"gamma": 0.0}, "AdaBound: gamma must be > 0"),
    ],
    "adai": [
        *usual("Adai", "lr", "betas[0]", "betas[1]", "weight_decay"),
        BadCase({"eps": 0.0}, r"Adai: eps must be in \(0, 1\], got 0"),
        BadCase({"eps": 1.5}, r"Adai: eps must be in \(0, 1\], got 1.5"),
    ],
    "adam_lbfgs": [BadCase({"lr": -1.0}, "Invalid learning rate"), *SWITCH],
    "ademamix": [
        *usual("AdEMAMix", "lr", "weight_decay"),
        BadCase({"betas": (0.9, 0.999)}, "AdEMAMix: betas must be three numbers, got"),
        BadCase({"betas": (0.0, 0.9, 0.99)}, r"AdEMAMix: betas\[0\] must be in \(0, 1\), got 0"),
        BadCase({"betas": (0.9, 1.0, 0.99)}, r"AdEMAMix: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 0.999, 0.8)}, r"AdEMAMix: betas\[2\] must be at least betas\[0\]"),
        BadCase({"eps": -1.0}, "AdEMAMix: eps must be >= 0 and finite, got -1"),
        BadCase({"alpha": -1.0}, "AdEMAMix: alpha must be >= 0 and finite, got -1"),
        BadCase({"horizon": 1.5}, "AdEMAMix: horizon must be a whole number >= 0, got 1.5"),
    ],
    "fromage": usual("Fromage", "lr"),
    "hvadam_lbfgs": [BadCase({"lr": -1.0}, "HVAdam: lr must be >= 0 and finite, got -1"), *SWITCH],
    "lbfgs": [
        BadCase({"lr": 0.0}, "LBFGS: lr must be > 0 and finite, got 0"),
        BadCase({"history_size": 0}, "LBFGS: history_size must be a whole number >= 1, got 0"),
        BadCase({"max_eval": 0.5}, "LBFGS: max_eval must be a whole number >= 1, got 0.5"),
    ],
    "lion": [
        *usual("Lion", "lr", "betas[0]", "weight_decay"),
        BadCase({"betas": 0.9}, "Lion: betas must be a pair of numbers, got 0.9"),
    ],
    "lookahead": [
        *wrapper("Lookahead"),
        BadCase({"k": 0}, "Lookahead: k must be a whole number >= 1, got 0"),
        BadCase({"alpha": 1.5}, r"Lookahead: alpha must be in \[0, 1\], got 1.5"),
    ],
    "lookaround": [
        *wrapper("Lookaround"),
        BadCase({"heads": 0}, "Lookaround: heads must be a whole number >= 1, got 0"),
        BadCase({"k": 0}, "Lookaround: k must be a whole number >= 1, got 0"),
    ],
    "msvag": [
        *usual("MSVAG", "lr", "weight_decay"),
        BadCase({"beta": 1.0}, r"MSVAG: beta must be in \[0, 1\), got 1"),
    ],
    "muon": [
        *usual("Muon", "lr", "momentum", "betas[1]", "weight_decay"),
        BadCase({"eps": -1.0}, "Muon: eps must be >= 0"),
    ],
    "nadam": [*TORCH, BadCase({"momentum_decay": -1.0}, "Invalid momentum_decay")],
    "padam": [
        *usual("Padam", *ADAM),
        BadCase({"partial": 0.6}, r"Padam: partial must be in \[0, 0.5\], got 0.6"),
    ],
    "qhadam": [
        *usual("QHAdam", "lr", "betas[0]", "eps", "weight_decay"),
        BadCase({"nus": 0.7}, "QHAdam: nus must be a pair of numbers, got 0.7"),
        BadCase({"nus": (0.7, 1.5)}, r"QHAdam: nus\[1\] must be in \[0, 1\], got 1.5"),
    ],
    "rmsprop": [TORCH[0], *TORCH[3:], BadCase({"alpha": -1.0}, "Invalid alpha")],
    "schedule_free_adamw": [
        *usual("ScheduleFreeAdamW", "lr", "betas[1]", "weight_decay"),
        BadCase({"betas": (0.0, 0.9)}, r"ScheduleFreeAdamW: betas\[0\] must be above 0"),
        BadCase({"eps": -1.0}, "ScheduleFreeAdamW: eps must be >= 0"),
        BadCase(
            {"warmup_steps": -1}, "ScheduleFreeAdamW: warmup_steps must be a whole number >= 0"
        ),
    ],
    "sgd": [TORCH[0], TORCH[-1], BadCase({"momentum": -0.1}, "Invalid momentum")],
    "sgd_ema": usual("SGDEMA", "lr", "momentum", "weight_decay"),
    "swa": [
        *wrapper("SWA"),
        BadCase({"horizon": 1.5}, "SWA: horizon must be a whole number >= 0, got 1.5"),
        BadCase({"start": 5.0}, r"SWA: start must be in \[0, 1\), got 5"),
        BadCase({"swa_lr": -1.0}, "SWA: swa_lr must be >= 0 and finite, got -1"),
        BadCase({"anneal": 1.0}, r"SWA: anneal must be in \[0, 1\), got 1"),
        BadCase({"every": 0.5}, "SWA: every must be a whole number >= 1, got 0.5"),
    ],
    "yogi": [
        *usual("Yogi", *ADAM),
        BadCase({"initial_accumulator": -1.0}, "Yogi: initial_accumulator must be >= 0"),
    ],
    "zigzag": [
        BadCase({"lr": -1.0}, "Zigzag: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"Zigzag: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "Zigzag: eps must be > 0 and finite, got 0"),
        BadCase({"gamma": -1.0}, "Zigzag: gamma must be >= 0"),
        BadCase({"weight_decay": -1.0}, "Zigzag: weight_decay must be >= 0"),
        BadCase({"hidden_scale": -1.0}, "Zigzag: hidden_scale must be >= 0"),
        BadCase({"average": 0.5}, "Zigzag: average must be >= 1 and finite, got 0.5"),
        BadCase({"hold": 1.0}, r"Zigzag: hold must be in \[0, 1\), got 1"),
        BadCase({"horizon": 0}, "Zigzag: horizon must be a whole number >= 1, got 0"),
        BadCase({"moves": "beta2"}, "Zigzag: moves must be one of 'nu', 'beta1', got 'beta2'"),
        BadCase({"scope": "layer"}, "Zigzag: scope must be one of 'all', 'tensor', got 'layer'"),
        BadCase({"span": 0.5}, "Zigzag: span must be a pair of numbers, got 0.5"),
        BadCase({"span": (0.5, 1.5)}, r"Zigzag: span\[1\] must be in \[0, 1\], got 1.5"),
        BadCase({"moves": "beta1"}, r"Zigzag: span\[1\] must be in \[0, 1\), got 1"),
        BadCase({"between": (0.2, 0.1)}, r"Zigzag: between must rise, got \(0.2, 0.1\)"),
    ],
    **dict.fromkeys(("adam", "adamw", "radam"), TORCH),
    **dict.fromkeys(("hvadam", "hvadam0", "hvadam1", "hvadam2"), HVADAM),
}
