"""`verify_profile.v2`: the operator's registry of verification profiles (agent-threader-v2 §7)."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from schemas.v2 import Name, Operator

StepKind = Literal["build", "test", "lint", "smoke"]


class ProbeStep(Operator):
    """A probe of the provider that a task builds, by `cacp probe`."""

    base_url: str = Field(
        pattern=r"^https?://[^\s]+$",
        description="Where the provider answers. Nothing else is called.",
    )
    contract: Name | None = Field(
        None, description="The contract's id or name; by default that of the task."
    )
    serve: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="Starts the provider in the step's folder, and is ended after the probe."
    )
    cases: int = Field(100, ge=1, description="Requests to each endpoint.")
    seed: int = Field(0, ge=0, description="The same seed draws the same requests.")


class VerifyStep(Operator):
    """One command of a profile, or a probe. Smoke steps run last, whatever their place in the list
    (§8)."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["cmd"]}, {"required": ["probe"]}]}
    )

    name: Name
    cmd: str | None = Field(None, min_length=1, description="Run by /bin/sh.")
    probe: ProbeStep | None = Field(None, description="In place of `cmd`.")
    cwd: str = Field(".", description="Relative to the workspace; may not leave it.")
    timeout_sec: float = Field(600, gt=0, le=86_400)
    kind: StepKind | None = Field(None, description="Derived from the name when absent.")
    env: dict[str, str] = Field({})

    @property
    def layer(self) -> StepKind:
        """The kind of this step, else the kind that its name suggests. A probe is a smoke step: it
        runs what was built."""
        if self.kind is not None:
            return self.kind
        if self.probe is not None:
            return "smoke"
        name = self.name.lower()
        if any(word in name for word in ("smoke", "browser", "e2e")):
            return "smoke"
        if any(word in name for word in ("test", "spec", "check")):
            return "test"
        return "lint" if "lint" in name else "build"

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.cmd is None) == (self.probe is None):
            raise ValueError("a step has either cmd or probe")
        return self


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
