"""Exit codes and the errors that carry them: 0 done, 1 failed, 2 usage, 3 refused by rules, 4 not found or conflict."""

from enum import IntEnum


class Exit(IntEnum):
    """What a script can tell from the exit code."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    NOT_FOUND_OR_CONFLICT = 4


class CommandError(Exception):
    """A command that can't go on: one sentence for people and an exit code for scripts."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code


class UsageError(CommandError):
    """Input that can't be read or parsed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)
