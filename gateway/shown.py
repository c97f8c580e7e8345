"""How the values of requests are shown: by the members that may be read by anybody, and no others."""


def shown(value: object, *members: str) -> str:
    """For the ``repr`` of a named tuple; these are made for each request, and faster than frozen data classes."""
    return f"{type(value).__name__}({', '.join([f'{name}={getattr(value, name)!r}' for name in members])})"
