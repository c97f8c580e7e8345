"""The closed, frozen shape of every value that crosses a border."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen value; a field that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
