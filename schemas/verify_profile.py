"""`verify_profile.v2`: the operator's registry of verification profiles (agent-threader-v2 §7)."""

from typing import Literal, Self

from pydantic import Field, model_validator

from schemas.v2 import Name, Operator

StepKind = Literal["build", "test", "lint", "smoke"]


class VerifyStep(Operator):
    """One command of a profile. Smoke steps run last, whatever their place in the list (§8)."""

    name: Name
    cmd: str = Field(min_length=1, description="Run by /bin/sh.")
    cwd: str = Field(".", description="Relative to the workspace; may not leave it.")
    timeout_sec: float = Field(600, gt=0, le=86_400)
    kind: StepKind | None = Field(None, description="Derived from the name when absent.")
    env: dict[str, str] = Field({})

    @property
    def layer(self) -> StepKind:
        """The kind of this step, else the kind that its name suggests."""
        if self.kind is not None:
            return self.kind
        name = self.name.lower()
        if any(word in name for word in ("smoke", "browser", "e2e")):
            return "smoke"
        if any(word in name for word in ("test", "spec", "check")):
            return "test"
        return "lint" if "lint" in name else "build"


class VerifyProfile(Operator):
    steps: list[VerifyStep] = Field([])
    rollback_on_failure: bool = True
    inherit_env: bool | list[str] = Field(
        True, description="All of the runner's environment, none but PATH and HOME, or these names."
    )
    env: dict[str, str] = Field({})

    @model_validator(mode="after")
    def _step_names_differ(self) -> Self:
        names = [step.name for step in self.steps]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"step names must differ; {', '.join(twice)} occurs more than once")
        return self


class VerifyRegistry(Operator):
    profiles: dict[Name, VerifyProfile]
