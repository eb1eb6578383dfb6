"""Options that each contender must refuse, with the message that it must refuse them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class BadCase(NamedTuple):
    """Options that a contender must refuse, with a message that matches."""

    options: Mapping[str, Any]
    match: str


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

BAD: Mapping[str, Sequence[BadCase]] = {
    "adabelief": [
        BadCase({"lr": -1.0}, "AdaBelief: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"AdaBelief: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"AdaBelief: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "AdaBelief: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "AdaBelief: weight_decay must be >= 0"),
        BadCase(
            {"weight_decay_mode": "l2"}, "AdaBelief: weight_decay_mode must be one of 'coupled'"
        ),
        BadCase({"rectify": "yes"}, "AdaBelief: rectify must be one of True, False, got 'yes'"),
    ],
    "adabound": [
        BadCase({"lr": -1.0}, "AdaBound: lr must be > 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"AdaBound: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"AdaBound: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "AdaBound: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "AdaBound: weight_decay must be >= 0"),
        BadCase({"final_lr": -1.0}, "AdaBound: final_lr must be >= 0"),
        BadCase({"gamma": 0.0}, "AdaBound: gamma must be > 0"),
    ],
    "adai": [
        BadCase({"lr": -1.0}, "Adai: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"Adai: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Adai: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "Adai: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "Adai: weight_decay must be >= 0"),
        BadCase({"eps": 1.5}, r"Adai: eps must be in \[0, 1\], got 1.5"),
    ],
    "adam": [
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"betas": (1.0, 0.999)}, "Invalid beta parameter at index 0"),
        BadCase({"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
    "adam_lbfgs": [BadCase({"lr": -1.0}, "Invalid learning rate"), *SWITCH],
    "adamw": [
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"betas": (1.0, 0.999)}, "Invalid beta parameter at index 0"),
        BadCase({"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
    "ademamix": [
        BadCase({"lr": -1.0}, "AdEMAMix: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (0.9, 0.999)}, "AdEMAMix: betas must be three numbers, got"),
        BadCase({"betas": (0.0, 0.9, 0.99)}, r"AdEMAMix: betas\[0\] must be in \(0, 1\), got 0"),
        BadCase({"betas": (0.9, 1.0, 0.99)}, r"AdEMAMix: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 0.999, 0.8)}, r"AdEMAMix: betas\[2\] must be at least betas\[0\]"),
        BadCase({"eps": -1.0}, "AdEMAMix: eps must be >= 0 and finite, got -1"),
        BadCase({"weight_decay": -1.0}, "AdEMAMix: weight_decay must be >= 0"),
        BadCase({"alpha": -1.0}, "AdEMAMix: alpha must be >= 0 and finite, got -1"),
        BadCase({"horizon": 1.5}, "AdEMAMix: horizon must be a whole number >= 0, got 1.5"),
    ],
    "fromage": [BadCase({"lr": -1.0}, "Fromage: lr must be >= 0 and finite, got -1")],
    "hvadam_lbfgs": [BadCase({"lr": -1.0}, "HVAdam: lr must be >= 0 and finite, got -1"), *SWITCH],
    "lbfgs": [
        BadCase({"lr": 0.0}, "LBFGS: lr must be > 0 and finite, got 0"),
        BadCase({"history_size": 0}, "LBFGS: history_size must be a whole number >= 1, got 0"),
        BadCase({"max_eval": 0.5}, "LBFGS: max_eval must be a whole number >= 1, got 0.5"),
    ],
    "lion": [
        BadCase({"lr": -1.0}, "Lion: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.99)}, r"Lion: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": 0.9}, "Lion: betas must be a pair of numbers, got 0.9"),
        BadCase({"weight_decay": -1.0}, "Lion: weight_decay must be >= 0"),
    ],
    "lookahead": [
        BadCase({"lr": -1.0}, "Lookahead: lr must be >= 0 and finite, got -1"),
        BadCase({"inner": "lbfgs"}, "Lookahead: inner must be one of 'sgd', 'adam', got 'lbfgs'"),
        BadCase({"momentum": 1.0}, r"Lookahead: momentum must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Lookahead: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "Lookahead: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "Lookahead: weight_decay must be >= 0"),
        BadCase({"k": 0}, "Lookahead: k must be a whole number >= 1, got 0"),
        BadCase({"alpha": 1.5}, r"Lookahead: alpha must be in \[0, 1\], got 1.5"),
    ],
    "lookaround": [
        BadCase({"lr": -1.0}, "Lookaround: lr must be >= 0 and finite, got -1"),
        BadCase({"inner": "lbfgs"}, "Lookaround: inner must be one of 'sgd', 'adam', got 'lbfgs'"),
        BadCase({"momentum": 1.0}, r"Lookaround: momentum must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Lookaround: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "Lookaround: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "Lookaround: weight_decay must be >= 0"),
        BadCase({"heads": 0}, "Lookaround: heads must be a whole number >= 1, got 0"),
        BadCase({"k": 0}, "Lookaround: k must be a whole number >= 1, got 0"),
    ],
    "msvag": [
        BadCase({"lr": -1.0}, "MSVAG: lr must be >= 0 and finite, got -1"),
        BadCase({"beta": 1.0}, r"MSVAG: beta must be in \[0, 1\), got 1"),
        BadCase({"weight_decay": -1.0}, "MSVAG: weight_decay must be >= 0"),
    ],
    "muon": [
        BadCase({"lr": -1.0}, "Muon: lr must be >= 0 and finite, got -1"),
        BadCase({"momentum": 1.0}, r"Muon: momentum must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Muon: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"weight_decay": -1.0}, "Muon: weight_decay must be >= 0"),
        BadCase({"eps": -1.0}, "Muon: eps must be >= 0"),
    ],
    "nadam": [
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"betas": (1.0, 0.999)}, "Invalid beta parameter at index 0"),
        BadCase({"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
        BadCase({"momentum_decay": -1.0}, "Invalid momentum_decay"),
    ],
    "padam": [
        BadCase({"lr": -1.0}, "Padam: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"Padam: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Padam: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "Padam: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "Padam: weight_decay must be >= 0"),
        BadCase({"partial": 0.6}, r"Padam: partial must be in \[0, 0.5\], got 0.6"),
    ],
    "qhadam": [
        BadCase({"lr": -1.0}, "QHAdam: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"QHAdam: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"nus": 0.7}, "QHAdam: nus must be a pair of numbers, got 0.7"),
        BadCase({"nus": (0.7, 1.5)}, r"QHAdam: nus\[1\] must be in \[0, 1\], got 1.5"),
        BadCase({"eps": 0.0}, "QHAdam: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "QHAdam: weight_decay must be >= 0"),
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
    "radam": [
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"betas": (1.0, 0.999)}, "Invalid beta parameter at index 0"),
        BadCase({"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
    "rmsprop": [
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"alpha": -1.0}, "Invalid alpha"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
    "schedule_free_adamw": [
        BadCase({"lr": -1.0}, "ScheduleFreeAdamW: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (0.0, 0.9)}, r"ScheduleFreeAdamW: betas\[0\] must be above 0"),
        BadCase({"betas": (0.9, 1.0)}, r"ScheduleFreeAdamW: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": -1.0}, "ScheduleFreeAdamW: eps must be >= 0"),
        BadCase({"weight_decay": -1.0}, "ScheduleFreeAdamW: weight_decay must be >= 0"),
        BadCase(
            {"warmup_steps": -1}, "ScheduleFreeAdamW: warmup_steps must be a whole number >= 0"
        ),
    ],
    "sgd": [
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"momentum": -0.1}, "Invalid momentum"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
    "sgd_ema": [
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"momentum": 1.0}, r"SGDEMA: momentum must be in \[0, 1\), got 1"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
    "swa": [
        BadCase({"lr": -1.0}, "SWA: lr must be >= 0 and finite, got -1"),
        BadCase({"inner": "lbfgs"}, "SWA: inner must be one of 'sgd', 'adam', got 'lbfgs'"),
        BadCase({"momentum": 1.0}, r"SWA: momentum must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"SWA: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "SWA: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "SWA: weight_decay must be >= 0"),
        BadCase({"horizon": 1.5}, "SWA: horizon must be a whole number >= 0, got 1.5"),
        BadCase({"start": 5.0}, r"SWA: start must be in \[0, 1\), got 5"),
        BadCase({"swa_lr": -1.0}, "SWA: swa_lr must be >= 0 and finite, got -1"),
        BadCase({"anneal": 1.0}, r"SWA: anneal must be in \[0, 1\), got 1"),
        BadCase({"every": 0.5}, "SWA: every must be a whole number >= 1, got 0.5"),
    ],
    "yogi": [
        BadCase({"lr": -1.0}, "Yogi: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"Yogi: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Yogi: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "Yogi: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "Yogi: weight_decay must be >= 0"),
        BadCase({"initial_accumulator": -1.0}, "Yogi: initial_accumulator must be >= 0"),
    ],
    **dict.fromkeys(("hvadam", "hvadam0", "hvadam1", "hvadam2"), HVADAM),
}
