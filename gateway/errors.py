"""What can go wrong in this room, for the people who start it."""


class GatewayError(Exception):
    """The gateway cannot start or go on; the message says what would be right."""
