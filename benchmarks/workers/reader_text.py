"""A module as a compiler writes it, of any number of lines: kernels of 2,000 lines, every register written once."""

import random

# {F} is a register that is written, {f} one that is read; likewise p, r and d; {n} a number, {x} eight hex digits
BODY = [
    "ld.global.f32 \t%f{F}, [%rd{d}+{n}];",
    "fma.rn.f32 \t%f{F}, %f{f}, %f{f}, %f{f};",
    "add.s32 \t%r{R}, %r{r}, {n};",
    "mad.lo.s32 \t%r{R}, %r{r}, %r{r}, %r{r};",
    "mul.wide.s32 \t%rd{D}, %r{r}, 4;",
    "add.s64 \t%rd{D}, %rd{d}, %rd{d};",
    "setp.lt.s32 \t%p{P}, %r{r}, %r{r};",
    "selp.f32 \t%f{F}, %f{f}, %f{f}, %p{p};",
    "@%p{p} bra \t$L__BB{k}_{l};",
    "mov.u32 \t%r{R}, %tid.x;",
    "mov.f32 \t%f{F}, 0f{x};",
    "shl.b32 \t%r{R}, %r{r}, 2;",
    "st.global.f32 \t[%rd{d}+{n}], %f{f};",
    "cvt.rn.f32.s32 \t%f{F}, %r{r};",
    "ld.shared.f32 \t%f{F}, [%r{r}+{n}];",
    "max.f32 \t%f{F}, %f{f}, %f{f};",
]
KERNEL = 2000


def module(lines: int, seed: int = 0) -> str:
    chance = random.Random(seed)
    text = [".version 8.0", ".target sm_90", ".address_size 64", ""]
    number = 0
    while len(text) < lines:
        text += _kernel(number, min(KERNEL, max(lines - len(text), 20)), chance)
        number += 1
    return "\n".join(text) + "\n"


def _kernel(k: int, lines: int, chance: random.Random) -> list[str]:
    text = [
        f".visible .entry kernel_{k}(",
        f"\t.param .u64 kernel_{k}_param_0,",
        f"\t.param .u32 kernel_{k}_param_1",
        ")",
        "{",
        f"\t.reg .pred \t%p<{lines}>;",
        f"\t.reg .f32 \t%f<{lines}>;",
        f"\t.reg .b32 \t%r<{lines}>;",
        f"\t.reg .b64 \t%rd<{lines}>;",
        f"\tld.param.u64 \t%rd1, [kernel_{k}_param_0];",
        f"\tld.param.u32 \t%r1, [kernel_{k}_param_1];",
    ]
    made = {"p": 1, "f": 1, "r": 2, "d": 2}
    label = 0
    for at in range(len(text), lines - 3):
        if at % 25 == 0:
            text.append(f"$L__BB{k}_{label}:")
            label += 1
            continue
        form = BODY[chance.randrange(len(BODY))]
        if form[0] == "@" and not label:
            form = BODY[1]
        text.append("\t" + _filled(form, made, k, chance.randrange(max(label, 1)), chance))
    return [*text, "\tret;", "}", ""]


def _filled(form: str, made: dict[str, int], k: int, label: int, chance: random.Random) -> str:
    """The form with registers: a new one where it writes, one of the last forty of its kind where it reads."""
    words = form.split("{")
    text = words[0]
    for word in words[1:]:
        name, rest = word.split("}", 1)
        kind = name[0].lower()
        if name == "k":
            value = str(k)
        elif name == "l":
            value = str(label)
        elif name in ("n", "x"):
            value = str(4 * chance.randrange(1000)) if name == "n" else f"{chance.randrange(1 << 31):08X}"
        elif name[0].isupper():
            value = str(made[kind])
            made[kind] += 1
        else:
            value = str(chance.randrange(max(0, made[kind] - 40), made[kind]))
        text += value + rest
    return text
