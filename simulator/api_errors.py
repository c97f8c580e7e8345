"""The one error that the HTTP side answers with; each dialect has its own body for it."""


class ApiError(Exception):
    """A request that is refused: status, kind, the field at fault and what to say."""

    def __init__(self, status: int, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param


def bad_request(message: str, param: str | None = None) -> ApiError:
    """Return a 400 for a value that the engine cannot serve."""
    return ApiError(400, "BadRequestError", message, param)


def wrong_field(location: str, kind: str, message: str, value: object) -> ApiError:
    """Return a 400 for a field of the wrong type, worded as a schema validator words it."""
    shown = value if isinstance(value, str | int | float | bool | None) and len(repr(value)) <= 80 else "..."
    detail = {"type": kind, "loc": location, "msg": message, "input": shown}
    return ApiError(400, "Bad Request", f"1 validation error:\n  {detail}", location)
