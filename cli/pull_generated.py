"""Holds generated types to what types may be: nothing in them runs, whatever they were made of."""

import ast
import re
from collections.abc import Iterator

_EXPRESSIONS = (
    ast.BinOp, ast.BitOr, ast.Constant, ast.Dict, ast.List, ast.Load, ast.Name, ast.Subscript,
    ast.Tuple, ast.UnaryOp, ast.USub,
)  # fmt: skip
_KNOWN = frozenset({"bool", "dict", "float", "int", "list", "str", "tuple"})
_MODULES = frozenset({"__future__", "typing"})
_LINE = re.compile(r"export (?:type|interface) [\w$]+|\}|/\*\*|//| \*| {4}|$")
"""How the lines of declarations begin that the generator writes."""


class NoTypes(ValueError):
    """Generated text holds something else than types; the message says where."""


def check_python(text: str) -> None:
    """Raises NoTypes if a module holds more than imports of `typing`, TypedDicts and aliases."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NoTypes(f"it is not Python: {type(error).__name__}") from None
    for statement in module.body:
        for part in _unexpected(statement):
            raise NoTypes(f"line {getattr(part, 'lineno', 0)} is no type")
    names = [part for part in ast.walk(module) if isinstance(part, ast.Name)]
    defined = _KNOWN | {name.id for name in names if isinstance(name.ctx, ast.Store)}
    for part in ast.walk(module):
        if isinstance(part, ast.ClassDef):
            defined |= {part.name}
        elif isinstance(part, ast.alias):
            defined |= {part.asname or part.name}
    unknown = sorted({name.id for name in names} - defined)
    if unknown:
        raise NoTypes(f"it names {unknown[0]}, which is not in it")
    for part in _failing(module):
        raise NoTypes(f"line {part.lineno} can't be evaluated")


def _failing(module: ast.Module) -> Iterator[ast.expr]:
    """The operands that are texts, of unions which are evaluated: `list[A] | "B"`. Annotations of
    classes are not."""
    aliases = [line for line in module.body if isinstance(line, ast.AnnAssign)]
    quoted = {ast.unparse(a.target) for a in aliases if a.value is not None and _is_text(a.value)}
    for line in module.body:
        if not isinstance(line, ast.ClassDef):
            unions = [part for part in ast.walk(line) if isinstance(part, ast.BinOp)]
            for side in (side for union in unions for side in (union.left, union.right)):
                if _is_text(side) or (isinstance(side, ast.Name) and side.id in quoted):
                    yield side


def _is_text(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and isinstance(part.value, str)


def _unexpected(statement: ast.stmt) -> Iterator[ast.AST]:
    """What of a statement at the top of a module is not of a type."""
    match statement:
        case ast.ImportFrom(module=module, level=0) if module in _MODULES:
            return
        case ast.AnnAssign(target=ast.Name(), annotation=ast.Name(), value=ast.expr() as value):
            yield from _foreign(value)
        case ast.Assign(
            targets=[ast.Name()],
            value=ast.Call(func=ast.Name(id="TypedDict"), args=[ast.Constant(), members]),
        ) if not statement.value.keywords:  # type: ignore[attr-defined]
            yield from _foreign(members)
        case ast.ClassDef(decorator_list=[], keywords=[]):
            for base in statement.bases:
                yield from _foreign(base)
            for line in statement.body:
                yield from _unexpected_member(line)
        case ast.Expr(value=ast.Constant(value=str())):
            return
        case _:
            yield statement


def _unexpected_member(line: ast.stmt) -> Iterator[ast.AST]:
    match line:
        case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=None):
            yield from _foreign(annotation)
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
            return
        case _:
            yield line


def _foreign(expression: ast.expr) -> Iterator[ast.AST]:
    """What of an expression is not of a type. A text is the name of a type, which may be evaluated
    later, but for the values of a Literal and the keys of a TypedDict."""
    waiting: list[ast.AST] = [expression]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, _EXPRESSIONS):
            yield part
        elif isinstance(part, ast.Constant):
            if isinstance(part.value, str) and not part.value.isidentifier():
                yield part
        elif isinstance(part, ast.Dict):
            yield from (key or part for key in part.keys if not isinstance(key, ast.Constant))
            waiting += part.values
        elif isinstance(part, ast.Subscript) and ast.unparse(part.value).startswith("Literal"):
            inner = ast.walk(part.slice)
            yield from (value for value in inner if not isinstance(value, _EXPRESSIONS))
        else:
            waiting += ast.iter_child_nodes(part)


def check_typescript(text: str) -> None:
    """Raises NoTypes if a line of declarations begins otherwise than those of types. A file of
    declarations (`.d.ts`) is never run."""
    for number, line in enumerate(text.split("\n"), 1):
        if not _LINE.match(line):
            raise NoTypes(f"line {number} is no type")
