"""What one engine has to say for itself, and the steps that all of them share. Verdicts stand in the data."""

from typing import Protocol

from engines.draft import Draft
from engines.kv_publishing import KV_EVENTS_FLAG, kv_events_setting
from engines.wishes import Wish
from fleet.engine import CommandLine


class Engine(Protocol):
    """How a manifest becomes an engine's command line."""

    def derive(self, wish: Wish, draft: Draft, host: str | None, port: int | None) -> None:
        """Everything that the manifest says, as flags; ``None`` where it is not started yet."""
        ...

    def command(self, wish: Wish, draft: Draft) -> CommandLine:
        """The finished command."""
        ...


def settings(engine: Engine, wish: Wish, host: str | None = None, port: int | None = None) -> Draft:
    """What is in force: derived from the manifest, then what every command line states, then the manifest's flags."""
    draft = Draft(wish.flags)
    engine.derive(wish, draft, host, port)
    put_written(wish, draft)
    put_memory_share(wish, draft)
    draft.give(wish.given)
    return draft


def put_written(wish: Wish, draft: Draft) -> None:
    """Settings whose default moved between versions, and those that the house always states."""
    for item in wish.table.written:
        if not item.when or not wish.asks.isdisjoint(item.when):
            draft.put(item.flag, item.value)
    shutdown = wish.table.shutdown
    if shutdown.flag is not None:
        draft.put(shutdown.flag, shutdown.drain_seconds)


def put_memory_share(wish: Wish, draft: Draft) -> None:
    """The share of a GPU's memory that the manifest grants, in place of what every command line states."""
    support, hardware = wish.table.memory_share, wish.hardware
    if support is not None and hardware is not None:
        draft.put(support.flag, hardware.memory_share)


def put_streaming(wish: Wish, draft: Draft) -> None:
    """How weights that stand behind a URI are read."""
    if wish.weights_uri is not None and wish.table.streaming is not None:
        draft.put(wish.table.streaming.flag, wish.table.streaming.value)


def put_quantization(wish: Wish, draft: Draft) -> None:
    """The quantisation, unless the checkpoint says it itself."""
    word = wish.spec.model.quantization
    support = wish.table.quantizations.get(word) if word else None
    if word is None or support is None or support.flag is None:
        return
    if word not in wish.spec.model.id.lower():
        draft.put(support.flag, support.value)


def put_kv_cache(wish: Wish, draft: Draft) -> None:
    """The type of the KV cache."""
    support = wish.table.kv_cache
    if wish.spec.batch is not None and support.flag is not None:
        draft.put(support.flag, support.values.get(wish.spec.batch.kv_cache_dtype))


def put_kv_events(wish: Wish, draft: Draft) -> None:
    """Where it tells which prompts it holds."""
    if wish.spec.features.kv_events is not None:
        draft.put_json(KV_EVENTS_FLAG, kv_events_setting(wish.name))


def put_parallelism(wish: Wish, draft: Draft) -> None:
    """How a replica is split; kinds of size 1 other than tensor are left out."""
    for kind, support in wish.table.parallelism.items():
        size = getattr(wish.parallelism, kind)
        if kind == "tensor" or size > 1:
            draft.put(support.flag, True if support.sizes == "all-ranks" else size)


def named_adapters(wish: Wish) -> tuple[str, ...]:
    """LoRA adapters as ``name=source``; without a name the last part of the source is the name."""
    adapters = wish.spec.features.lora
    return tuple(item if "=" in item else f"{item.rstrip('/').rpartition('/')[2]}={item}" for item in adapters)


def plain_command(wish: Wish, draft: Draft, *, positional: bool) -> CommandLine:
    """Launch, the model where it is positional, and the flags."""
    model = (wish.model_name,) if positional else ()
    argv = (*wish.table.launch, *model, *draft.argv())
    return CommandLine(argv=argv, environment=dict(wish.table.environment), files={})
