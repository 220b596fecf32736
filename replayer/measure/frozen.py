"""The base of every value that is written into a run folder or printed as JSON."""

from pydantic import BaseModel, ConfigDict

__all__ = ["Frozen"]


class Frozen(BaseModel):
    """A validated value that does not change; unknown keys are refused, in files as in code."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,  # most commands use few of the models that they import
    )
