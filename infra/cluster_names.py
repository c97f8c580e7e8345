"""What an administrator of the cluster is called in names of resources."""


def admin_word(principal: str) -> str:
    """Account and path of a role's ARN, whatever order the list has."""
    _, _, _, _, account, path = principal.split(":", 5)
    return f"{account}-{path.removeprefix('role/').replace('/', '-')}"
