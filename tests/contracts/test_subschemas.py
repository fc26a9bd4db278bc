from contracts.subschemas import adds_null, subschemas


def test_each_keyword_that_holds_schemas_is_looked_into() -> None:
    schema = {
        "type": "object",
        "properties": {"a": 1, "b": True},
        "items": {"x": 1},
        "allOf": [2, {}],
        "dependencies": {"c": ["a"], "d": {}},
        "enum": [{"properties": {}}],
        "$defs": [],
        "not": False,
    }
    assert sorted(subschemas(schema), key=str) == sorted(
        [
            (("properties", "a"), 1),
            (("properties", "b"), True),
            (("items",), {"x": 1}),
            (("allOf", 0), 2),
            (("allOf", 1), {}),
            (("dependencies", "d"), {}),
            (("not",), False),
        ],
        key=str,
    )


def test_items_may_be_a_list() -> None:
    assert list(subschemas({"items": [{}, True]})) == [(("items", 0), {}), (("items", 1), True)]


def test_null_is_added_by_nullable_and_by_nothing_like_it() -> None:
    assert adds_null({"nullable": True, "enum": ["a"]})
    others: list[dict[str, object]] = [{}, {"nullable": False}, {"nullable": "true"}]
    assert not any(adds_null(schema) for schema in others)
