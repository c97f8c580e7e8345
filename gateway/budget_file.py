"""The standing of budgets on disk, so that nobody gets a day's tokens twice because a gateway started again."""

from pathlib import Path

from pydantic import ValidationError

from fleet.value import Value
from gateway.atomic_file import PRIVATE, write_atomically
from gateway.budget_state import KeptAccount
from gateway.errors import GatewayError


class KeptBudgets(Value):
    """Every account that knows something."""

    accounts: tuple[KeptAccount, ...] = ()


class BudgetFile:
    """One file that is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> tuple[KeptAccount, ...]:
        """What was kept; raises GatewayError where it can't be read."""
        try:
            return KeptBudgets.model_validate_json(self._path.read_bytes()).accounts
        except FileNotFoundError:
            return ()
        except (OSError, ValidationError) as error:
            reason = error.strerror if isinstance(error, OSError) else f"{error.error_count()} errors in it"
            raise GatewayError(f"{self._path} cannot be used: {reason}; budgets start as if nothing was used") from None

    def save(self, accounts: tuple[KeptAccount, ...]) -> None:
        """Keep it; raises OSError and leaves the one before."""
        write_atomically(self._path, KeptBudgets(accounts=accounts).model_dump_json().encode(), mode=PRIVATE)
