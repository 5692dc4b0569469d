# ruff: noqa: INP001
"""Makes the polynomials of the portable mathematics: interpolations at Chebyshev nodes.

    python3 native/portable/generate/coefficients.py

writes math_coefficients.h, src/samebits/portable/reference/coefficients.py, and the table in
docs/reference/portable-numerics.md between its two marks. It needs mpmath. Coefficients are part of the
numerics: another result is another version of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 60
Function = Callable[[Any], Any]
ROOT = Path(__file__).resolve().parents[3]
START, END = "<!-- coefficients: start -->", "<!-- coefficients: end -->"


def removed(function: Function, powers: int) -> Function:
    """The rest of the Taylor series of a function at 0 after its first terms, divided by x^powers."""
    series = mp.taylor(function, 0, 60)

    def rest(x: Any) -> Any:
        if abs(x) < mp.mpf("0.02"):
            return mp.fsum(c * x**k for k, c in enumerate(series[powers:]))
        return (function(x) - mp.fsum(c * x**k for k, c in enumerate(series[:powers]))) / x**powers

    return rest


def of_square(function: Function, first: Any) -> Function:
    """G with function(x) = first x + x^3 g(x^2), for an odd function."""
    series = mp.taylor(function, 0, 61)

    def rest(z: Any) -> Any:
        if z < mp.mpf("0.01"):
            return mp.fsum(series[3 + 2 * k] * z**k for k in range(29))
        x = mp.sqrt(z)
        return (function(x) - first * x) / x**3

    return rest


def interpolate(function: Function, low: Any, high: Any, degree: int) -> list[Any]:
    """Coefficients, lowest first, of the polynomial through the Chebyshev nodes of an interval."""
    n = degree + 1
    nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    values = [function(middle + half * node) for node in nodes]
    matrix = mp.matrix(n, n)
    for i, node in enumerate(nodes):
        for j in range(n):
            matrix[i, j] = (middle + half * node) ** j
    return list(mp.lu_solve(matrix, mp.matrix(values)))


def erf_ratio(z: Any) -> Any:
    """erf(x) / x - 1 as a function of z = x^2."""
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1 if x else 2 / mp.sqrt(mp.pi) - 1


def scaled_erfc(t: Any) -> Any:
    """(1 + 2 x) exp(x^2) erfc(x) at t = (x - 3) / (x + 3)."""
    x = 3 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def scaled_erfc_rest(t: Any) -> Any:
    """The same less its value at t = 0, divided by t."""
    return (scaled_erfc(t) - scaled_erfc(0)) / t if t else mp.diff(scaled_erfc, 0)


def log_erfc(u: Any) -> Any:
    """-log(erfc(1 + u))."""
    return -mp.log(mp.erfc(1 + u))


def power_terms(w: Any) -> Any:
    """1/5 + w/7 + w^2/9 + ..."""
    return mp.fsum(w**k / (5 + 2 * k) for k in range(60))


def erfinv_near(w: Any) -> Any:
    """erfinv(y) / y at w = -log(1 - y^2)."""
    if w < mp.mpf("1e-20"):
        return mp.sqrt(mp.pi) / 2
    y = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(y) / y


def erfinv_far(root: Any) -> Any:
    """erfinv(y) at root^2 = -log(1 - y^2)."""
    rest = mp.exp(-root * root) / (1 + mp.sqrt(-mp.expm1(-root * root)))  # 1 - y
    return mp.findroot(lambda x: mp.log(mp.erfc(x)) - mp.log(rest), root)


def lgamma_from(start: int) -> Function:
    """lgamma(start + t) / t; lgamma(start) is 0."""

    def ratio(t: Any) -> Any:
        return mp.loggamma(start + t) / t if abs(t) > mp.mpf("1e-25") else mp.digamma(start)

    return ratio


def stirling(z: Any) -> Any:
    """X (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) at x = 1 / sqrt(z)."""
    if z < mp.mpf("1e-6"):
        return mp.fsum(mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) * z ** (k - 1) for k in range(1, 12))
    x = 1 / mp.sqrt(z)
    return x * (mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def digamma_rest(z: Any) -> Any:
    """x^2 (log(x) - 1 / (2 x) - digamma(x)) at x = 1 / sqrt(z)."""
    if z < mp.mpf("1e-6"):
        return mp.fsum(mp.bernoulli(2 * k) / (2 * k) * z ** (k - 1) for k in range(1, 12))
    x = 1 / mp.sqrt(z)
    return x * x * (mp.log(x) - 1 / (2 * x) - mp.digamma(x))


def two_by_pi_digits() -> list[str]:
    """2/pi in binary: 64 zeros, then its first 1216 digits after the point."""
    with mp.workprec(1400):
        digits = int(mp.floor(mp.ldexp(2 / mp.pi, 1216)))
    words = [digits >> (64 * (18 - i)) & (2**64 - 1) for i in range(19)]
    return [f"0x{word:016x}u" for word in [0, *words]]


LN2 = mp.log(2)
ROOT_LOW, ROOT_HIGH = mp.sqrt(0.5) - 1, mp.sqrt(2) - 1
EIGHTH = mp.mpf(1) / 4
# name: (function, low, high, degree in float32 arithmetic, degree in float64 arithmetic or None)
POLYNOMIALS: dict[str, tuple[Function, Any, Any, int | None, int | None]] = {
    "exp": (removed(mp.exp, 3), -LN2 / 2, LN2 / 2, 4, 10),
    "log": (removed(mp.log1p, 3), ROOT_LOW, ROOT_HIGH, 8, 20),
    "tanh": (of_square(mp.tanh, 1), 0, 1, 7, 15),
    "erf": (erf_ratio, 0, 1, 7, 14),
    "erf_far of f32": (log_erfc, 0, 3, 9, None),
    "erf_far of f64": (log_erfc, 0, 5, None, 24),
    "erfcx_slope": (lambda t: mp.diff(scaled_erfc, t), mp.mpf("-0.65"), mp.mpf(25) / 31, None, 5),
    "erfcx": (scaled_erfc_rest, mp.mpf("-0.65"), mp.mpf(25) / 31, None, 21),
    "sin": (of_square(mp.sin, 1), 0, mp.pi**2 / 16, None, 6),
    "cos": (
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z else mp.mpf(1) / 24,
        0,
        mp.pi**2 / 16,
        None,
        5,
    ),
    "sinh": (of_square(mp.sinh, 1), 0, 1, None, 8),
    "atan": (of_square(mp.atan, 1), 0, mp.mpf("0.1725"), None, 11),
    "asin": (of_square(mp.asin, 1), 0, EIGHTH, None, 13),
    "asinh": (of_square(mp.asinh, 1), 0, EIGHTH, None, 13),
    "erfinv": (erfinv_near, 0, 6, None, 14),
    "erfinv_far": (erfinv_far, mp.mpf("2.44"), mp.mpf("6.1"), None, 12),
    "lgamma_one": (lgamma_from(1), mp.mpf("-0.5"), mp.mpf("0.5"), None, 27),
    "lgamma_two": (lgamma_from(2), mp.mpf("-0.5"), mp.mpf("0.5"), None, 18),
    "stirling": (stirling, 0, mp.mpf(1) / 64, None, 7),
    "digamma": (digamma_rest, 0, mp.mpf(1) / 100, None, 8),
    "power": (power_terms, 0, mp.mpf("0.0295"), None, 8),
    "atanh": (of_square(mp.atanh, 1), 0, EIGHTH, None, 14),
}


def high_part(value: Any, bits: int) -> Any:
    """The first bits of a number."""
    exponent = int(mp.floor(mp.log(abs(value), 2))) + 1 - bits
    return mp.ldexp(mp.nint(mp.ldexp(value, -exponent)), exponent)


def parts(value: Any, *sizes: int) -> list[Any]:
    """A number as a sum of parts of so many bits, the last one being the rest."""
    found = []
    for size in sizes:
        found.append(high_part(value - mp.fsum(found), size))
    return [*found, value - mp.fsum(found)]


def constants() -> dict[str, tuple[Any, str]]:
    """Constants, and their types: "f32", "f64" or "both"."""
    table: dict[str, tuple[Any, str]] = {}

    def put(types: str, *names_and_values: Any) -> None:
        for name, value in zip(names_and_values[::2], names_and_values[1::2], strict=True):
            table[f"{name}_{types}"] = (value, types)

    for types, bits, head in (("f32", 24, 15), ("f64", 53, 41)):
        high, low = parts(LN2, head)
        put(types, "LN2_HIGH", high, "LN2_LOW", low, "LOG2_E", 1 / LN2)
        for name, value in (("LN2", LN2), ("ONE_BY_LN2", 1 / LN2), ("ONE_BY_LN10", 1 / mp.log(10))):
            high, low = parts(value, bits)
            put(types, f"{name}_FULL", high, f"{name}_REST", low)
        high, low = parts(mp.log10(2), head)
        put(types, "LOG10_2_HIGH", high, "LOG10_2_LOW", low)
    half_pi = parts(mp.pi / 2, 34, 34, 34)
    for i, part in enumerate(half_pi):
        put("f64", f"HALF_PI_{i + 1}", part)
    for name, value in (
        ("HALF_PI", mp.pi / 2),
        ("ROOT_HALF", mp.sqrt(0.5)),
        ("ERFCX", scaled_erfc(0)),
        ("THIRD", mp.mpf(1) / 3),
    ):
        high, low = parts(value, 53)
        put("f64", f"{name}_FULL", high, f"{name}_REST", low)
    put("f64", "TWO_BY_PI", 2 / mp.pi, "TWO_BY_ROOT_PI", 2 / mp.sqrt(mp.pi))
    put("f64", "HALF_LOG_TWO_PI", mp.log(2 * mp.pi) / 2)
    return table


def as_hex(value: Any, types: str) -> str:
    """The nearest float32 or float64, as C and `float.fromhex` read it."""
    number = np.float32(str(value)) if types == "f32" else np.float64(str(mp.nstr(value, 40)))
    if types == "f32":  # no detour over float64: that would round twice
        wide = high_part(value, 24) if value else mp.mpf(0)
        number = np.float32(float(wide))
    text = float(number).hex()
    mantissa, _, exponent = text.partition("p")
    mantissa = mantissa.rstrip("0") if "." in mantissa else mantissa
    return mantissa.rstrip(".") + "p" + exponent


def everything() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Constants, and polynomials, as hex floats."""
    names = {name: as_hex(value, types) for name, (value, types) in constants().items()}
    polynomials = {}
    for name, (function, low, high, *degrees) in POLYNOMIALS.items():
        for types, degree in zip(("f32", "f64"), degrees, strict=True):
            if degree is not None:
                terms = interpolate(function, low, high, degree)
                polynomials[f"{name.split()[0]}_{types}"] = [as_hex(term, types) for term in terms]
    return names, polynomials


def c_header(names: dict[str, str], polynomials: dict[str, list[str]]) -> str:
    """math_coefficients.h."""
    lines = ["/* Made by generate/coefficients.py: do not edit. See docs/reference/portable-numerics.md. */"]
    lines += [
        "#ifndef SAMEBITS_PORTABLE_MATH_COEFFICIENTS_H",
        "#define SAMEBITS_PORTABLE_MATH_COEFFICIENTS_H",
        "",
    ]
    lines += ['#include "math_base.h"', ""]
    suffix = {"f32": "f", "f64": ""}
    lines += [f"#define SBM_{name} {value}{suffix[name[-3:]]}" for name, value in names.items()]
    lines += ["#define SBM_TWO_BY_PI_DIGITS {" + ", ".join(two_by_pi_digits()) + "}"]
    for name, terms in polynomials.items():
        kind = name[-3:]
        real = {"f32": "float", "f64": "double"}[kind]
        lines += ["", f"SBP_FUNCTION {real} sbm_{name[:-4]}_terms_{kind}({real} x) {{"]
        lines += [f"    {real} p = {terms[-1]}{suffix[kind]};"]
        lines += [f"    p = SBM_FMA_{kind}(p, x, {term}{suffix[kind]});" for term in reversed(terms[:-1])]
        lines += ["    return p;", "}"]
    return "\n".join([*lines, "", "#endif", ""])


def python_module(names: dict[str, str], polynomials: dict[str, list[str]]) -> str:
    """reference/coefficients.py."""
    lines = ['"""Made by native/portable/generate/coefficients.py: do not edit."""', ""]
    lines += ["from __future__ import annotations", "", "# fmt: off", "CONSTANTS = {"]
    lines += [f'    "{name}": float.fromhex("{value}"),' for name, value in names.items()]
    lines += ["}", "", "POLYNOMIALS = {"]
    for name, terms in polynomials.items():
        lines += [f'    "{name}": tuple(float.fromhex(text) for text in (']
        lines += [*[f'        "{term}",' for term in terms], "    )),"]
    return "\n".join([*lines, "}", "# fmt: on", ""])


def markdown(names: dict[str, str], polynomials: dict[str, list[str]]) -> str:
    """The tables of docs/reference/portable-numerics.md."""
    lines = ["", "| constant | value |", "|---|---|"]
    lines += [f"| `{name}` | `{value}` |" for name, value in names.items()]
    lines += ["", "| polynomial | coefficients, of x^0 first |", "|---|---|"]
    lines += [
        f"| `{name}` | {' '.join(f'`{term}`' for term in terms)} |" for name, terms in polynomials.items()
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the three."""
    names, polynomials = everything()
    (ROOT / "native/portable/math_coefficients.h").write_text(c_header(names, polynomials))
    (ROOT / "src/samebits/portable/reference/coefficients.py").write_text(python_module(names, polynomials))
    page = ROOT / "docs/reference/portable-numerics.md"
    text = page.read_text()
    if START in text:
        before, _, rest = text.partition(START)
        after = rest.partition(END)[2]
        page.write_text(before + START + "\n" + markdown(names, polynomials) + "\n" + END + after)


if __name__ == "__main__":
    main()
