"""Fresh ids for answers, tools and permissions."""

import uuid


def fresh_id(prefix: str) -> str:
    """Return the prefix with sixteen random hexadecimal digits."""
    return prefix + uuid.uuid4().hex[:16]
