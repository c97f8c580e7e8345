"""The token of the control plane's API, in a file that is read again for every request."""

from pathlib import Path

from gateway.errors import GatewayError


def read_token(path: Path) -> str:
    """The token; raises GatewayError when there is none."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise GatewayError(f"the token file {path} cannot be read: {type(error).__name__}") from error
    if not (token.isascii() and token.isprintable() and token):
        raise GatewayError(f"the token file {path} holds no token; it must hold one line of ASCII")
    return token
