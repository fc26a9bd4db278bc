"""Rows under their heads, for people and for `awk`: as wide as the terminal, whole on a pipe."""

import shutil
import sys
from collections.abc import Collection, Sequence

import typer

GAP = 2
LEAST = 10
"""Characters to which a cell may be cut, if its head is not longer."""
CUT = "…"


def print_columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, none: str, whole: Collection[str] = ()
) -> None:
    """Print the rows, without cutting cells under the heads `whole`. Without rows, print only
    `none`, on stderr."""
    if not rows:
        typer.echo(none, err=True)
        return
    for line in laid_out(heads, rows, terminal_width(), whole):
        typer.echo(line)


def terminal_width() -> int | None:
    """The columns of the terminal; None when standard output is something else."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def laid_out(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None,
    whole: Collection[str] = (),
) -> list[str]:
    """The lines of a table that is at most `width` columns wide.

    Where the rows are wider, their longest cells are cut, except those of the first column and of
    `whole`, which other commands take. Where even that is too wide, each row becomes a paragraph
    with a line for each cell that is not empty or "-", and nothing is cut.
    """
    natural = [max(len(line[column]) for line in [heads, *rows]) for column in range(len(heads))]
    widths = natural if width is None else _fitting(natural, heads, width, whole)
    if widths is None:
        return _paragraphs(heads, rows)
    return [
        (" " * GAP)
        .join(cut(cell, size).ljust(size) for cell, size in zip(line, widths, strict=True))
        .rstrip()
        for line in [heads, *rows]
    ]


def cut(text: str, width: int) -> str:
    """`text` in at most `width` characters. Of ids and URLs it keeps the end, which differs.

    >>> cut("aid://example.com/frontend@1.0.0", 16), cut("a long name", 8)
    ('…/frontend@1.0.0', 'a long …')
    >>> cut("aid://example.com/frontend@1.0.0", 26)
    'example.com/frontend@1.0.0'
    """
    if len(text) <= width:
        return text
    if len(text.removeprefix("aid://")) <= width:
        return text.removeprefix("aid://")
    if "://" in text:
        return CUT + text[len(text) - width + 1 :]
    return text[: width - 1] + CUT


def _fitting(
    natural: list[int], heads: Sequence[str], width: int, whole: Collection[str]
) -> list[int] | None:
    """Widths with which a line fits, or None. The widest columns give way first."""
    widths = list(natural)
    least = [
        size if head in (heads[0], *whole) else min(size, max(LEAST, len(head)))
        for size, head in zip(natural, heads, strict=True)
    ]
    room = width - GAP * (len(widths) - 1)
    while sum(widths) > room:
        wide = [(size, place) for place, size in enumerate(widths) if size > least[place]]
        if not wide:
            return None
        widths[max(wide)[1]] -= 1
    return widths


def _paragraphs(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    size = max(map(len, heads)) + GAP
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        cells = zip(heads, row, strict=True)
        lines += [f"{head.ljust(size)}{cell}" for head, cell in cells if cell not in ("", "-")]
    return lines
