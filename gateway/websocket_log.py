"""The log of the WebSocket library, which would hold what was said."""

import logging


def silent() -> logging.Logger:
    """A logger that says nothing: errors of a connection are told by this room's own words."""
    logger = logging.getLogger("gateway.websockets")
    logger.setLevel(logging.CRITICAL + 1)
    logger.propagate = False
    return logger
