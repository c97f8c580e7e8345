"""One task for each endpoint that is watched; which ones they are changes with the snapshot."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Hashable
from typing import Generic, TypeVar

Watched = TypeVar("Watched", bound=Hashable)


class EndpointTasks(Generic[Watched]):
    """Starts and ends the tasks."""

    def __init__(self, watch: Callable[[Watched], Coroutine[None, None, None]]) -> None:
        self._watch = watch
        self._tasks: dict[Watched, asyncio.Task[None]] = {}

    def follow(self, wanted: Collection[Watched]) -> None:
        """Watch these and no others; a watch that broke by a fault of its own raises it here."""
        for task in self._tasks.values():
            if task.done():
                task.result()
        for gone in self._tasks.keys() - set(wanted):
            self._tasks.pop(gone).cancel()
        for watched in wanted:
            if watched not in self._tasks:
                self._tasks[watched] = asyncio.create_task(self._watch(watched))

    async def end(self) -> None:
        """End all."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
