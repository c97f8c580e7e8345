"""A plan for people: the verdict first, the memory of a GPU as a picture, then speed, cost, reasons and advice."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.table import paragraph, table
from fleet.hardware import BYTES_PER_GIB
from fleet.plan_answer import PlanAnswer

BAR_WIDTH = 60
_PARTS = (("weights", "#"), ("kv_cache", "="), ("activation", "~"), ("overhead", "o"), ("free", "."))
_MILLISECONDS = 1000.0
_APART = "prefill and decode apart, or together on as many GPUs"
_OF_A_START = frozenset({"ways to start", "settings", _APART})
"""Tables about an engine that runs: nothing of it helps where the plan does not fit."""


def show_plan(answer: PlanAnswer) -> None:
    """Print the answer."""
    document = answer.to_document()
    starts = answer.fits != "no"
    for line in (*_head(answer, document), *_memory(answer, document), *(_speed(document) if starts else ())):
        paragraph(line)
    for title, rows in _tables(document):
        if rows and (starts or title not in _OF_A_START):
            table(rows, title=title)
    known = document["memory_constants"]
    paragraph(f"memory constants measured on {known['engine']} {known['measured_on']}", indent="note: ")
    for note in document["notes"]:
        paragraph(note, indent="note: ")


def _head(answer: PlanAnswer, document: Mapping[str, Any]) -> Iterator[str]:
    model, size = document["model"], document["weights_bytes_total"]
    total, active = model["parameters_total"], model["parameters_active"]
    counted = "parameters unknown" if total is None else f"{_billions(total)} parameters"
    counted += f", {_billions(active)} active" if active is not None and active != total else ""
    stored = "weights unknown" if size is None else f"weights {_gib(size)}"
    yield f"{model['id']} ({model['architecture']}): {counted}, {stored}, {_kv(document)}"
    verdict = {"yes": "fits", "no": "does not fit", "unknown": "unknown"}[answer.fits]
    profile = answer.wish.mig_profile
    where = f"{answer.plan.gpus} x {answer.gpu.name}{f' {profile}' if profile else ''} as {answer.plan}"
    nodes = "" if answer.nodes == 1 else f" over {answer.nodes} nodes"
    yield f"{verdict}: {where}{nodes}"
    for message in _missing(document):
        yield f"not known: {message}"


def _missing(document: Mapping[str, Any]) -> list[str]:
    """What is said of each missing key, once."""
    first: dict[str, str] = {}
    for item in document["missing"]:
        first.setdefault(item["key"], item["message"])
    return list(first.values())


def _kv(document: Mapping[str, Any]) -> str:
    per_token, sliding = document["kv_bytes_per_token"], document["kv_sliding"]
    if per_token is None:
        return "KV cache unknown"
    words = f"KV {per_token / 1024:,.1f} KiB a token"
    if sliding is not None:
        words += f" + {sliding['bytes_per_token'] / 1024:,.1f} KiB within a window of {sliding['window_tokens']:,}"
    state = document["state_bytes_per_sequence"]
    return words + (f" + {state / 1024**2:,.1f} MiB of state a sequence" if state else "")


def _memory(answer: PlanAnswer, document: Mapping[str, Any]) -> Iterator[str]:
    memory = answer.memory
    if memory is None:
        return
    parts = {name: document["per_gpu"][f"{name}_bytes"] for name, _ in _PARTS}
    one = "slice" if answer.wish.mig_profile else "GPU"
    yield f"one {one}, {_gib(memory.visible)} visible: [{bar(list(parts.values()), memory.visible)}]"
    yield ", ".join(f"{sign} {name.replace('_', ' ')} {_gib(parts[name])}" for name, sign in _PARTS)
    if answer.fits == "yes":
        yield (
            f"the cache holds {document['kv_tokens']:,} tokens: {document['sequences_at_context']:,.1f} requests of "
            f"{memory.context_tokens:,} tokens; longest context {answer.largest_context or 0:,} tokens"
        )


def bar(sizes: Sequence[int], whole: int, *, width: int = BAR_WIDTH) -> str:
    """Sizes as one bar of ``width`` characters; what does not fit is cut off, and each part above 0 gets one."""
    drawn = ""
    for size, (_, sign) in zip(sizes, _PARTS, strict=True):
        drawn += sign * (max(1, round(width * size / whole)) if size > 0 and whole > 0 else 0)
    return drawn[:width].ljust(width)


def _speed(document: Mapping[str, Any]) -> Iterator[str]:
    latency = document["latency"]
    if latency["basis"] == "none":
        said = [reason for reason in latency["reasons"] if reason not in _missing(document)]
        yield f"speed not known: {'; '.join(said) or 'it follows from what is missing above'}"
    else:
        tpot, ttft = duration_span(latency["tpot_seconds"]), duration_span(latency["ttft_seconds"])
        yield f"per output token {tpot}, first token {ttft} ({latency['basis']})"
    rate = document["throughput_tokens_per_second"]["total"]
    if rate is not None:
        yield f"at saturation {rate['low']:,.0f}-{rate['high']:,.0f}, about {rate['mid']:,.0f} output tokens a second"
    yield from _cold_start(document["cold_start_seconds"])
    yield from _cost(document["cost"])


def _cold_start(start: Mapping[str, Any] | None) -> Iterator[str]:
    if start is None:
        return
    phases = {name: value for name, value in start.items() if isinstance(value, dict) and name != "total"}
    slowest = max(phases, key=lambda name: float(phases[name]["mid"]))
    total, longest = start["total"], phases[slowest]["mid"]
    yield (
        f"cold start {total['low']:,.0f}-{total['high']:,.0f} s with weights from {start['weights_from']} at "
        f"{start['weights_gigabytes_per_second']:,.1f} GB/s; the longest "
        f"phase is {slowest} ({longest:,.0f} s)"
    )


def _cost(cost: Mapping[str, Any] | None) -> Iterator[str]:
    if cost is None:
        return
    whole, share, larger = cost["usd_per_hour"], cost["usd_per_hour_of_share"], cost["priced_as_part_of"]
    if share is None:
        yield f"cost not known: {cost['reason']}"
        return
    bought = f"({cost['purchase']}, priced {cost['priced_on']}{', an estimate' if cost['is_estimate'] else ''})"
    if larger is not None:
        words = (
            f"the price of {cost['instance_type']} is not known; as part of a {larger} ${share:,.2f} an hour {bought}"
        )
    else:
        words = f"${whole:,.2f} an hour for {cost['nodes']} x {cost['instance_type']} {bought}"
        words += f", ${share:,.2f} for the part that is used" if share != whole else ""
    per_million = cost["usd_per_million_output_tokens"]
    yield words + (f"; ${per_million['mid']:,.2f} a million output tokens at saturation" if per_million else "")


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str, list[dict[str, object]]]]:
    yield "why not", [{"rule": item["rule"], "reason": item["message"]} for item in document["reasons"]]
    yield "what would fit", [{"change": item["change"], "how": item["message"]} for item in document["counterfactuals"]]
    yield "other plans that fit", [_alternative(item) for item in document["alternatives"]]
    yield "ways to start", [_start(item) for item in document["cold_start_options"]]
    yield _APART, list(_pools(document["disaggregation"]))
    settings = document["batch"] or ()
    yield "settings", [{"setting": i["name"], "value": i["value"], "why": i["reason"]} for i in settings]


def _pools(found: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """Nothing where separate pools are not proposed."""
    if found["pools"] is None:
        return
    apart = f"{found['prefill_replicas']} prefill, {found['decode_replicas']} decode"
    for way, side in ((apart, found["pools"]), ("together", found["colocated"])):
        rate, cost = side["throughput_tokens_per_second"]["total"], side["cost"]["usd_per_million_output_tokens"]
        yield {
            "replicas": way,
            "gpus": side["gpus"],
            "output token": duration_span(side["latency"]["tpot_seconds"]),
            "first token": duration_span(side["latency"]["ttft_seconds"]),
            "tokens a second": "unknown" if rate is None else f"{rate['low']:,.0f}-{rate['high']:,.0f}",
            "a million tokens": "unknown" if cost is None else f"${cost['low']:,.2f}-{cost['high']:,.2f}",
        }


def _start(item: Mapping[str, Any]) -> dict[str, object]:
    total, phase = item["total"], item["breaking_phase"]
    return {
        "way": item["name"],
        "seconds": f"{total['low']:,.0f}-{total['high']:,.0f}",
        f"in {item['target_seconds']:g} s": item["reaches_target"],
        "longest": phase,
        "what": item["what"],
    }


def _alternative(item: Mapping[str, Any]) -> dict[str, object]:
    sizes = {name.upper(): item[name] for name in ("tp", "pp", "dp", "ep", "cp")}
    shown = "x".join(f"{name}{size}" for name, size in sizes.items() if size > 1) or "TP1"
    return {
        "plan": shown,
        "gpus": item["gpus"],
        "requests": f"{item['sequences_at_context']:,.1f}",
        "where": item["note"],
    }


def duration_span(interval: Mapping[str, float] | None) -> str:
    """From the low to the high end with the likely one, in seconds from 1 s up, else in milliseconds."""
    if interval is None:
        return "unknown"
    in_seconds = interval["high"] >= 1
    low, mid, high = (_figure(interval[name] * (1 if in_seconds else _MILLISECONDS)) for name in ("low", "mid", "high"))
    return f"{low}-{high} {'s' if in_seconds else 'ms'} (about {mid})"


def _figure(value: float) -> str:
    """Three digits, never as a power of ten."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def _billions(count: int) -> str:
    return f"{count / 1e9:,.1f} B" if count >= 1e9 else f"{count / 1e6:,.0f} M"


def _gib(size: int) -> str:
    return f"{size / BYTES_PER_GIB:,.1f} GiB"
