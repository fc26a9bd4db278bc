"""What the shop sells: name and price in cents."""

PRICES: dict[str, int] = {
    "chair": 8900,
    "table": 24900,
    "shelf": 12900,
    "desk": 18900,
    "stool": 3900,
    "mirror": 5900,
}
