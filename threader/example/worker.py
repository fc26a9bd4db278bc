"""A scripted worker that makes mistakes until its prompt has the missing facts."""

import json
import os
import re
import sys
import time
from pathlib import Path

CATALOG = Path("shop/catalog.py")

CODE = {
    "stock": '''"""Stock levels."""


def reserve(levels: dict[str, int], name: str, count: int) -> int:
    if levels[name] < count:
        raise ValueError(f"only {levels[name]} of {name} are left")
    levels[name] -= count
    return levels[name]
''',
    "slug": '''"""Names for addresses."""

import re


def slug(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
''',
    "money": '''"""Amounts."""


def parse(text: str) -> int:
    whole, _, cents = text.partition(".")
    return int(whole) * 100 + int(cents.ljust(2, "0")[:2] or 0)
''',
    "tax": '''"""Taxes."""


def tax(amount: int, percent: int) -> int:
    return (amount * percent + 50) // 100
''',
    "discount": '''"""Discounts."""


def discounted(amount: int, percent: int) -> int:
    return amount - (amount * percent + 50) // 100
''',
    "receipt": '''"""Receipts."""


def line(name: str, amount: int) -> str:
    return f"{name}  {amount // 100}.{amount % 100:02}"
''',
    "basket": '''"""Baskets."""

from shop.catalog import PRICES
from shop.discount import discounted


def total(items: list[str], percent: int) -> int:
    return discounted(sum(PRICES[item] for item in items), percent)
''',
    "checkout": '''"""The way out."""

from shop.basket import total
from shop.catalog import PRICES
from shop.receipt import line
from shop.tax import tax


def checkout(items: list[str]) -> list[str]:
    amount = total(items, 0)
    return [*(line(item, PRICES[item]) for item in items), line("total", amount + tax(amount, 20))]
''',
}

FLOATS = {
    "money": ('int(whole) * 100 + int(cents.ljust(2, "0")[:2] or 0)', "float(text)"),
    "tax": ("(amount * percent + 50) // 100", "round(amount * percent / 100, 2)"),
    "discount": ("amount - (amount * percent + 50) // 100", "amount * (1 - percent / 100)"),
}


def catalog(prompt: str) -> str:
    """The catalog with the lamp; truncated unless the prompt warns of that."""
    text = CATALOG.read_text()
    if "whole file" not in prompt.partition("# Mind for this attempt")[2]:
        return 'PRICES = {"lamp": 4500}\n# ... the rest stays as it is\n'
    return text.replace("}", '    "lamp": 4500,\n}')


def code(task: str, prompt: str) -> str:
    text = CODE[task]
    if task in FLOATS and not re.search(r"integers? of cents", prompt):
        text = text.replace(*FLOATS[task]).replace("-> int", "-> float")
    return text


def report(task: str, summary: str, writes: list[dict[str, str]]) -> None:
    result = {
        "contract_version": "2.0",
        "task_id": task,
        "status": "DONE",
        "summary": summary,
        "changed_files": [write["path"] for write in writes],
        "writes": [{**write, "encoding": "utf8"} for write in writes],
    }
    print(
        "<<<TASK_RESULT_V2>>>", json.dumps(result, indent=1), "<<<END_TASK_RESULT_V2>>>", sep="\n"
    )


def main() -> None:
    task = os.environ["CACP_TASK_ID"]
    prompt = sys.stdin.read()
    print(f"Reading the task {task} and looking at the repository.", flush=True)
    time.sleep(0.4 + len(task) % 3 * 0.3)
    if task == "probe":
        report(task, "ready", [])
        return
    if task == "catalog":
        write = {"path": str(CATALOG), "op": "replace", "content": catalog(prompt)}
    else:
        write = {"path": f"shop/{task}.py", "op": "create", "content": code(task, prompt)}
    if task == "receipt" and "contract" not in prompt.partition("# Mind for this attempt")[2]:
        print("I have written shop/receipt.py. Let me know if you need anything else!")
        return
    report(task, f"Wrote {write['path']} as asked.", [write])


if __name__ == "__main__":
    main()
