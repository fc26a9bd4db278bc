"""Every module has its mirrored test: server/domain/x.py → tests/server/domain/test_x.py."""

from pathlib import Path

from tests.architecture.source import OURS, ROOT, modules

THROUGH_OTHERS = {
    # Declarations that pydantic checks: every call of a method goes through them.
    Path("schemas/base.py"),
    # What a kind of database must have: mypy checks it of both, whose tests are those of
    # server/store/sqlite/storage.py and server/store/postgresql/storage.py.
    Path("server/store/storage.py"),
    # Rules of schemas, each of which test_schema_within.py tries by its name, in both directions.
    Path("contracts/schema_gaps.py"),
    Path("contracts/schema_keywords.py"),
    Path("contracts/schema_objects.py"),
    # Types alone.
    Path("contracts/model.py"),
    Path("schemas/comparison.py"),
    Path("schemas/dialect.py"),
    # What can be tried must have: mypy checks it of proof/endpoint_subject.py and
    # proof/graphql_subject.py.
    Path("proof/probe_subject.py"),
    # The example that `cacp thread scaffold` writes: threader/test_scaffold.py runs it whole.
    Path("threader/example/worker.py"),
    Path("threader/example/healer.py"),
    Path("threader/example/repo/shop/catalog.py"),
    Path("threader/example/repo/tests/test_shop.py"),
}
"""Modules that need no test of their own, and why."""


def mirror(module: Path) -> Path:
    return Path("tests") / module.with_name(f"test_{module.name}")


def needs_test(module: Path) -> bool:
    return module.name != "__init__.py" and module not in THROUGH_OTHERS


def test_every_module_has_its_mirrored_test() -> None:
    missing = [
        f"{module} → {mirror(module)}"
        for module in modules(*OURS)
        if needs_test(module) and not (ROOT / mirror(module)).is_file()
    ]
    assert missing == [], "\n" + "\n".join(missing)


def test_no_test_mirrors_a_module_that_is_gone() -> None:
    """A mirrored test may have more files beside it: test_x_properties.py, test_x_time.py."""
    known = {mirror(module) for module in modules(*OURS)}
    stray = [
        str(test)
        for package in OURS
        for test in modules(f"tests/{package}")
        if test.name.startswith("test_")
        and not any(test.parent == one.parent and test.stem.startswith(one.stem) for one in known)
    ]
    assert stray == []
