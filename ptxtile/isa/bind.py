"""Operand shapes → the one signature of a form that they fit, or an OperandError that says what each operand
takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ptxtile.errors import OperandError
from ptxtile.isa import registers, types
from ptxtile.isa.form import Form, Operand, Shape, Signature


def bind(form: Form, shapes: tuple[Shape, ...]) -> Signature:
    """The signature of `form` that operands of these shapes (see `form`) fit.

    Raises OperandError naming the operand, what it takes and what was given, for the signature, or the
    signatures, that come nearest. Remembered in `form.bound`.
    """
    known = form.bound.get(shapes)
    if known is not None:
        return known
    for signature in form.signatures:
        if len(signature.operands) == len(shapes) and all(map(fits, signature.operands, shapes)):
            form.bound[shapes] = signature
            return signature
    raise OperandError(_message(form, shapes))


# The kinds of symbol that an address of an opaque object may name; a parameter may be one.
_OPAQUE = {
    ".texref": frozenset(["texref", "tex", "param"]),
    ".samplerref": frozenset(["samplerref", "param"]),
    ".surfref": frozenset(["surfref", "param"]),
}
_NO_VARIABLES = frozenset(["func", "proto", "texref", "samplerref", "surfref"])
_LITERALS = frozenset(["int", "f32lit", "f64lit"])
_HALVES = frozenset([".bf16", ".bf16x2", ".f16x2"])  # a vector of these does not begin with a literal


def fits(operand: Operand, shape: Shape) -> bool:
    """Whether one operand may have this shape."""
    if shape[0] == "{" and all(each == "_" for each in shape[1:]):
        return False  # at least one element says what the vector is of
    if operand.loose:
        return _loose(operand, shape)
    if operand.negative and shape[0] != "-":
        return False
    if operand.kind == "value" and isinstance(shape, str):
        return _value(operand, shape)
    if not isinstance(shape, str):
        return _compound(operand, shape)
    if operand.kind == "label":
        return shape == "label"
    if operand.kind == "sink":
        return shape == "_"
    if operand.kind == "function":
        return shape in ("sym:func", "sym:proto")
    if operand.kind in ("prototype", "labels", "symbol"):
        return shape == "label" or shape.startswith("sym:")
    return False


def _value(operand: Operand, shape: str) -> bool:
    if operand.selected:
        return False
    if shape in operand.registers:
        return operand.register
    if shape in ("int", "f32lit", "f64lit"):
        return operand.immediate and shape.removesuffix("lit") in operand.literals
    if shape == "_":
        return operand.sink
    if shape == "!pred":
        return operand.negatable
    if shape.startswith("sreg:"):
        return operand.special and _special(operand, shape[5:])
    return shape.startswith("sym:") and operand.symbol


def _special(operand: Operand, name: str) -> bool:
    found = registers.special_register(name)
    if found is None or operand.type is None or bool(found.elements) != operand.whole:
        return False
    return any(_reads(operand.type, each) for each in (found.type, found.narrow) if each is not None)


def _reads(wanted: str, given: str) -> bool:
    known = types.all_types()
    if wanted == ".pred" or given == ".pred":
        return wanted == given
    return known[wanted].bits == known[given].bits and known[wanted].kind in ("b", "u", "s")


def _compound(operand: Operand, shape: tuple[Shape, ...]) -> bool:
    mark, *parts = shape
    if mark == "-" and (operand.minus or operand.negative):
        return fits(replace(operand, negative=False), parts[0])
    if mark == ".":
        return operand.kind == "value" and _part(operand, parts[0]) and parts[1] in operand.registers
    if mark == "{" and operand.single and operand.kind == "value":
        return len(parts) == 1 and fits(operand, parts[0])
    if mark == "{":
        return (
            operand.kind == "vector"
            and len(parts) == operand.length
            and (
                (_even(operand, parts) and all(map(fits, elements(operand), parts))) or _mixed(operand, parts)
            )
        )
    if mark == "|":
        return operand.kind == "pair" and len(parts) == 2 and all(map(fits, operand.elements, parts))
    if mark == "[":
        inner = operand.elements
        return (
            operand.kind == "address"
            and len(parts) == 1 + len(inner)
            and _base(operand, parts[0])
            and not any(each in _LITERALS for each in parts[1:])  # a syntax error: only within braces
            and all(map(fits, inner, parts[1:]))
        )
    if mark == "[.unified":
        return operand.unified and len(parts) == 1 and parts[0] in operand.registers
    return mark == "(" and operand.kind == "list"


def _even(operand: Operand, parts: Sequence[Shape]) -> bool:
    """Whether the registers of a vector are of one width, where wider ones than the type's may stand."""
    if operand.elements:
        return True
    return len({types.REGISTER_BITS[each] for each in parts if each in types.REGISTER_BITS}) <= 1


def _mixed(operand: Operand, parts: Sequence[Shape]) -> bool:
    """Whether the elements are of several types, among them a register of bit-size type that fits: then the assembler
    takes the whole for a vector of that type, whatever else of its width is in it; in what is read, literals too.
    """
    bits = ("b8", "b16", "b32", "b64")
    bit = next((each for each in parts if each in bits and each in operand.registers), None)
    if bit is None or operand.elements or (parts[0] in _LITERALS and operand.type in _HALVES):
        return False
    width = types.REGISTER_BITS[str(bit)]
    others = {each for each, bits in types.REGISTER_BITS.items() if bits == width or (bits, width) == (1, 32)}
    if operand.strict:
        others.discard("pred")
    if operand.role == "in" and not operand.pure:
        others |= _LITERALS
    if operand.sink:
        others.add("_")
    return all(isinstance(each, str) and each in others for each in parts)


def _part(operand: Operand, word: Shape) -> bool:
    """Whether `word` selects a part: in a selector of the table, x, y, z and w stand for digits, 0 to 3 of halves
    (h), 0 to 7 of bytes (b).
    """
    for selector in operand.selector:
        if word == selector:
            return True
        if (
            selector[-1] in "yw"
            and isinstance(word, str)
            and len(word) == len(selector)
            and word[0] == selector[0]
        ):
            return set(word[1:]) <= set("0123" if word[0] == "h" else "01234567")
    return False


def elements(operand: Operand) -> Sequence[Operand]:
    """The elements of a vector operand: those written out, or the same one so many times."""
    if operand.elements:
        return operand.elements
    one = Operand(
        operand.name, operand.role, "value", operand.type, operand.carrier, operand.registers, 1, operand.register,
        operand.immediate, operand.bounds, operand.sink, literals=operand.literals, choices=operand.choices,
    )  # fmt: skip
    return (one,) * operand.length


def _loose(operand: Operand, shape: Shape) -> bool:
    """Whether a value or vector fits an operand of which the assembler asks no more than that it be wide enough."""
    parts = shape[1:] if isinstance(shape, tuple) and shape[0] == "{" else (shape,)
    own = types.type_bits(operand.type) if operand.type is not None else 0
    if len(parts) not in (1, 2, 4):
        return False
    widths = {
        types.REGISTER_BITS[each] for each in parts if isinstance(each, str) and each in types.REGISTER_BITS
    }
    if len(widths - {1}) > 1 or len(parts) * max(widths or {own}) < operand.length * own:
        return False
    return all(isinstance(each, str) and _value(operand, each) for each in parts) or _mixed(operand, parts)


def _base(operand: Operand, shape: Shape) -> bool:
    if not isinstance(shape, str):
        return False
    if shape in operand.registers:
        return True
    if shape.startswith("sym:"):
        kind = shape[4:]
        named = _OPAQUE.get(operand.space or "")
        return operand.symbol and (kind not in _NO_VARIABLES if named is None else kind in named)
    return shape == "int" and operand.immediate


def check_literals(form: Form, signature: Signature, values: Sequence[object]) -> None:
    """Check integer literals against `bounds`, `choices`, `multiple` and `most`.

    `values` has one entry an operand: the integer, a tuple of the like for a vector, or anything else where
    there is none to check. OperandError otherwise.
    """
    for number, (operand, value) in enumerate(zip(signature.operands, values), 1):
        where = f"{form.spelling}: operand {number}"
        if isinstance(value, tuple):
            for place, (one, each) in enumerate(zip(elements(operand), value), 1):
                _check_literal(f"{where}, element {place}", one, each, signature, values)
        else:
            _check_literal(where, operand, value, signature, values)


def _check_literal(
    where: str, operand: Operand, value: object, signature: Signature, values: Sequence[object]
) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        return
    if operand.choices and value not in operand.choices:
        several = "one of " if len(operand.choices) > 1 else ""
        wanted = several + ", ".join(map(str, operand.choices))
    elif operand.bounds is not None and not operand.bounds[0] <= value <= operand.bounds[1]:
        wanted = f"{operand.bounds[0]} to {operand.bounds[1]}"
    elif value % operand.multiple:
        wanted = f"a multiple of {operand.multiple}"
    else:
        limit = next((v for each, v in zip(signature.operands, values) if each.name == operand.most), None)
        if not isinstance(limit, int) or value <= limit:
            return
        wanted = f"no more than {operand.most}, which is {limit}"
    raise OperandError(f"{where} ({operand.name}) is {value}, but must be {wanted}")


def _message(form: Form, shapes: tuple[Shape, ...]) -> str:
    counts = sorted({len(each.operands) for each in form.signatures})
    same = [each for each in form.signatures if len(each.operands) == len(shapes)]
    if not same:
        wanted = " or ".join(map(str, counts))
        plural = "" if counts == [1] else "s"
        lists = "\n".join(f"  {form.spelling} {written(each)}" for each in form.signatures[:6])
        return f"{form.spelling} takes {wanted} operand{plural}, {len(shapes)} given\n{lists}"
    nearest = _nearest(same, shapes)
    lines = [f"{form.spelling} does not take these operands"]
    for signature in nearest:
        lines.append(f"  {form.spelling} {written(signature)}")
        for number, (operand, shape) in enumerate(zip(signature.operands, shapes), 1):
            if not fits(operand, shape):
                lines.append(
                    f"    operand {number} ({operand.name}) must be {takes(operand)}, not {given(shape)}"
                )
    return "\n".join(lines)


def _nearest(signatures: Sequence[Signature], shapes: tuple[Shape, ...]) -> list[Signature]:
    """The signatures with the fewest operands that do not fit, at most three."""
    misses = [sum(not fits(o, s) for o, s in zip(each.operands, shapes)) for each in signatures]
    return [each for each, count in zip(signatures, misses) if count == min(misses)][:3]


def written(signature: Signature) -> str:
    """The operand list of a signature as text: "d, [a], {b, c}"."""
    return ", ".join(_written(each) for each in signature.operands)


def _written(operand: Operand) -> str:
    if operand.kind == "address":
        return "[" + ", ".join([operand.name, *map(_written, operand.elements)]) + "]"
    if operand.kind == "vector" and not operand.elements:
        return "{" + ", ".join(f"{operand.name}{n}" for n in range(operand.length)) + "}"
    return f"({operand.name})" if operand.kind == "list" else operand.name


def takes(operand: Operand) -> str:
    """Words for what may stand at an operand: "a .f32 register (f32, b32) or a float literal"."""
    if operand.kind == "vector":
        wider = ", or one as wide" if operand.loose else ""
        return f"a vector of {operand.length} elements{wider}, each {takes(elements(operand)[0])}"
    if operand.kind == "pair":
        return f"a pair p|q, each {takes(operand.elements[0])}"
    if operand.kind == "address":
        return _takes_address(operand)
    if operand.kind != "value":
        return {
            "label": "a label", "labels": "the name of a .branchtargets table", "function": "a function",
            "list": "a list in parentheses", "prototype": "the name of a prototype", "symbol": "a variable's name",
            "sink": "_",
        }[operand.kind]  # fmt: skip
    found: list[str] = []
    if operand.register:
        names = sorted(
            operand.registers, key=lambda each: (each != operand.carrier, types.REGISTER_BITS[each], each)
        )
        found.append(f"a {operand.type} register ({', '.join(names)})")
    if operand.selector:
        found.append(f"with a part {', '.join('.' + each for each in operand.selector)}")
    if operand.immediate:
        kind = "a float literal" if "int" not in operand.literals else "a literal"
        found.append("an integer literal" if operand.literals == frozenset(["int"]) else kind)
    if operand.special:
        found.append("a special register" + " with its elements (%tid)" * operand.whole)
    if operand.symbol:
        found.append("a variable's or function's name")
    if operand.minus or operand.negative:
        found.append("one with a minus sign")
    if operand.negatable:
        found.append("a negated predicate")
    if operand.sink:
        found.append("_")
    return ", ".join(found[:-1]) + " or " + found[-1] if len(found) > 1 else found[0]


def _takes_address(operand: Operand) -> str:
    space = f"{operand.space} address" if operand.space else "generic address"
    names = sorted(operand.registers, key=lambda each: (types.REGISTER_BITS[each], each))
    inside = f" and {len(operand.elements)} more inside the brackets" if operand.elements else ""
    inside += ", perhaps .unified" if operand.unified else ""
    return f"[a] with a {space} in a register ({', '.join(names)}){' or a name' if operand.symbol else ''}{inside}"


def given(shape: Shape) -> str:
    """Words for a shape: "a b32 register", "an integer literal", "a vector of 2"."""
    if isinstance(shape, str):
        words = {
            "int": "an integer literal", "f32lit": "a float literal", "f64lit": "a float literal", "label": "a label",
            "_": "_", "!pred": "a negated predicate",
        }  # fmt: skip
        if shape in words:
            return words[shape]
        kind, _, rest = shape.partition(":")
        if kind == "sreg":
            return f"the special register {rest}"
        return f"the name of a {rest} symbol" if kind == "sym" else f"a {shape} register"
    mark, *parts = shape
    if mark == "-":
        return f"minus {given(parts[0])}"
    if mark == ".":
        return f"the part .{parts[0]} of {given(parts[1])}"
    if isinstance(mark, str) and mark[:1] == "[":
        return f"an address [{', '.join(map(given, parts))}]{mark[1:]}"
    if mark == "{":
        return f"a vector of {len(parts)}: {', '.join(map(given, parts))}"
    return "a pair" if mark == "|" else "a list in parentheses"
