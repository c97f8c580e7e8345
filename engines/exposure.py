"""Which code paths a manifest switches on. Unless it can be told that a path is off, it is on."""

import json
from collections.abc import Mapping

from engines.draft import Draft
from engines.tables import PathRule
from engines.wishes import MEDIA, MEDIA_ON, Wish
from fleet.codepath import ALWAYS_EXPOSED, KNOWN_PATHS, CodePath, Exposure


def exposure(wish: Wish, draft: Draft) -> Exposure:
    """The open paths, each with what opens it."""
    if wish.flags.is_older:
        return _everything(f"{wish.flags.note}: what is off can't be told")
    media, on = media_reason(wish, draft), draft.on()
    reasons: dict[CodePath, str] = {}
    for rule in wish.table.exposure:
        found = None if _is_closed(rule, draft) else _opened_by(rule, wish, on, media)
        if found is not None:
            reasons[rule.path] = found
    return Exposure.of(reasons)


def media_reason(wish: Wish, draft: Draft) -> str | None:
    """Why requests may carry media, or ``None`` when it is certain that they may not."""
    taken = [kind for kind in wish.spec.features.modalities if kind in MEDIA]
    if taken:
        return f"features.modalities names {', '.join(taken)}"
    if wish.is_text_model:
        return None
    for closing in wish.table.closes_media:
        value = draft.value(closing.flag)
        if closing.how == "switch" and value is True:
            return None
        if closing.how == "zeros" and isinstance(value, str) and _is_all_zeros(value):
            return None
    return f"{wish.spec.model.id} is not known to take text only, and no flag limits media to 0"


def _is_all_zeros(text: str) -> bool:
    try:
        limits = json.loads(text)
    except ValueError:
        return False
    return isinstance(limits, dict) and all(limits.get(kind) == 0 for kind in MEDIA)


def _is_closed(rule: PathRule, draft: Draft) -> bool:
    return bool(rule.off) and any(str(draft.value(flag)) == value for flag, value in rule.off.items())


def _opened_by(rule: PathRule, wish: Wish, on: Mapping[str, str], media: str | None) -> str | None:
    if not on.keys().isdisjoint(rule.flags):
        switched = next(on[name] for name in rule.flags if name in on)
        return f"{switched} is set: {rule.reason}"
    if media is not None and MEDIA_ON in rule.any:
        return f"{rule.reason}: {media}"
    return rule.reason if rule.always or not wish.asks.isdisjoint(rule.any) else None


def _everything(reason: str) -> Exposure:
    return Exposure.of({path: reason for path in KNOWN_PATHS if path not in ALWAYS_EXPOSED})
