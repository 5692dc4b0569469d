"""Threats from what the script itself sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.commands.doctor.imports import FLEX_ATTENTION
from samebits.commands.doctor.threat import MAY_BREAK, NOTE, Threat
from samebits.interventions.plan import intervention_named
from samebits.switches.table import switch_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from samebits.commands.doctor.environment import EnvironmentSnapshot, Setting
    from samebits.switches.switch import Switch

# The values of the switches of precision with which float32 has fewer bits, on hardware that can do so, and
# the value with which it has all.
_NARROWED = {
    "matmul-precision": (("high", "medium"), "highest"),
    "matmul-allow-tf32": (("on",), "off"),
    "cudnn-allow-tf32": (("on",), "off"),
}
_NARROW_FORMATS = (("tf32", "bf16", "bfx9"), "ieee")


def settings_against_repeating(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The script sets no switch against a repeatable run."""
    without_timing = dict(intervention_named("autotuning").switches)
    for (name, value), places in _settings(snapshot).items():
        switch = switch_named(name)
        wanted = switch.value or without_timing.get(name)
        if value and wanted is not None and value != wanted and not switch.keeps(value):
            yield Threat(
                "repeatable",
                name,
                f"{places} {name} to {value}",
                _sentence(switch),
                _remedy(switch, wanted),
                switch.source,
                MAY_BREAK,
            )


def narrow_floats(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The script computes float32 with all its bits, on every machine."""
    for (name, value), places in _settings(snapshot).items():
        narrow, full = _NARROWED.get(name, _NARROW_FORMATS if name.startswith("fp32-") else ((), ""))
        if value in narrow:
            switch = switch_named(name)
            yield Threat(
                "portable",
                name,
                f"{places} {name} to {value}",
                f"{_sentence(switch)} Hardware without it gives other bits.",
                f"set it to {full} where runs on several kinds of GPUs are compared",
                switch.source,
                NOTE,
            )


def compiled_attention(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """No kernel of attention that the script has compiled adds in any order."""
    if FLEX_ATTENTION in (snapshot.imports or ()) and snapshot.torch.cuda:
        yield Threat(
            "repeatable",
            "flex_attention",
            "the script imports flex_attention",
            "Compiled for a GPU, it adds the gradients of tensors that `score_mod` captures (a learned bias) "
            "with atomic operations. `torch.use_deterministic_algorithms` and `samebits run --seed N` do not "
            "change that.",
            "call it uncompiled, or let score_mod capture only tensors that need no gradient",
            "pytorch#137452; torch/_inductor/kernel/flex/common.py, 2.15.0",
            MAY_BREAK,
        )


def _settings(snapshot: EnvironmentSnapshot) -> Mapping[tuple[str, str], str]:
    """Return which lines make each setting, by switch and value: `train.py:3 sets`."""
    places: dict[tuple[str, str], list[Setting]] = {}
    for setting in snapshot.settings:
        places.setdefault((setting.switch, setting.value), []).append(setting)
    return {key: _places(settings) for key, settings in places.items()}


def _places(settings: list[Setting]) -> str:
    first, rest = f"{settings[0].file}:{settings[0].line}", len(settings) - 1
    return f"{first} and {rest} more line{'s' if rest > 1 else ''} set" if rest else f"{first} sets"


def _sentence(switch: Switch) -> str:
    return f"{switch.why[:1].upper()}{switch.why[1:]}."


def _remedy(switch: Switch, wanted: str) -> str:
    if switch.value is None:
        return f"leave it out, or set it to {wanted}"
    return f"leave it out, or let `samebits run --on-drift restore` set it back to {wanted}"
