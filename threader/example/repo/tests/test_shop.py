"""Tests of the shop. What has not been written yet is skipped."""

import importlib
import unittest
from typing import Any


def load(name: str) -> Any:
    try:
        return importlib.import_module(f"shop.{name}")
    except ModuleNotFoundError:
        raise unittest.SkipTest(f"shop.{name} is not written yet") from None


def equal(actual: object, expected: object) -> None:
    assert actual == expected, f"{actual!r} should be {expected!r}"


class Shop(unittest.TestCase):
    def test_stock(self) -> None:
        levels = {"chair": 3}
        equal(load("stock").reserve(levels, "chair", 2), 1)
        try:
            load("stock").reserve(levels, "chair", 2)
        except ValueError:
            return
        raise AssertionError("reserving more than there is should raise ValueError")

    def test_slug(self) -> None:
        equal(load("slug").slug("  The Blue, Chair! "), "the-blue-chair")

    def test_money(self) -> None:
        equal(load("money").parse("12.30"), 1230)
        equal(load("money").parse("7"), 700)

    def test_catalog(self) -> None:
        prices = load("catalog").PRICES
        equal(prices["chair"], 8900)
        equal(len(prices) >= 6, True)

    def test_tax(self) -> None:
        equal(load("tax").tax(4500, 20), 900)
        equal(load("tax").tax(125, 10), 13)

    def test_discount(self) -> None:
        equal(load("discount").discounted(125, 10), 112)

    def test_receipt(self) -> None:
        equal(load("receipt").line("lamp", 4500), "lamp  45.00")

    def test_basket(self) -> None:
        equal(load("basket").total(["chair", "stool"], 10), 11520)

    def test_checkout(self) -> None:
        lines = load("checkout").checkout(["chair", "stool"])
        equal(lines, ["chair  89.00", "stool  39.00", "total  153.60"])
