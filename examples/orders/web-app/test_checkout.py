"""Runs against whatever answers at BACKEND_URL: `cacp mock`, or the backend itself."""

import os
import re
import unittest

import httpx
from checkout import OrderRefusedError, place_order

BACKEND_URL = os.environ.get("BACKEND_URL", "http://127.0.0.1:4010")


class CheckoutTest(unittest.TestCase):
    def test_the_customer_reads_the_price(self) -> None:
        with httpx.Client(base_url=BACKEND_URL) as backend:
            self.assertRegex(place_order(backend, "tea", 3), re.compile(r"^Order \d+: .*\d EUR$"))

    def test_a_refusal_is_told(self) -> None:
        wish = {"Prefer": "code=400"}
        with (
            httpx.Client(base_url=BACKEND_URL, headers=wish) as backend,
            self.assertRaises(OrderRefusedError),
        ):
            place_order(backend, "tea", 3)


if __name__ == "__main__":
    unittest.main()
