"""How often the collector of cycles looks: it stops everything, and most requests leave no cycle behind."""

import gc

_YOUNG_OBJECTS = 5_000
_ROUNDS = 50
"""Of the young before all are looked at; the two together bound what cycles can hold."""


def look_seldom() -> None:
    """Once everything that lives as long as the process is there: it is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, _ROUNDS, _ROUNDS)
