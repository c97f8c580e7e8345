"""Links to an earlier defect whose fix was incomplete, found in a record's text: only the ids are kept."""

import re

_ID = re.compile(r"CVE-\d{4}-\d{4,19}\b|GHSA(?:-[23456789cfghjmpqrvwx]{4}){3}\b|PYSEC-\d{4}-\d+\b")
_SENTENCE_END = re.compile(r"[.!?]\s|\n")
_INCOMPLETE = re.compile(
    r"(?:incomplete|insufficient|partial(?:ly)?|inadequate)\b[^.]{0,60}\b(?:fix|patch|mitigat|remediat)"
    r"|\bfix for\b|\bnot (?:fully |completely )?(?:included in the fix|fixed|patched)\b|attempts? to fix|\bfix bypass",
    re.IGNORECASE,
)
_BYPASS = re.compile(r"\bbypass", re.IGNORECASE)
_COMPARISON = re.compile(r"\b(?:different|similar|same|independent|unrelated)\b", re.IGNORECASE)
MAX_TEXT_CHARACTERS = 200_000


def incomplete_fix_ids(text: str, own: frozenset[str]) -> tuple[str, ...]:
    """Foreign ids in a sentence that speaks of an incomplete or bypassed fix, sorted.

    A comparison ("similar to CVE-…") is not a link.
    """
    read = text[:MAX_TEXT_CHARACTERS]
    if "CVE-" not in read and "GHSA-" not in read and "PYSEC-" not in read:
        return ()
    if own.issuperset(_ID.findall(read)):
        return ()
    links: set[str] = set()
    for sentence in _SENTENCE_END.split(read):
        if _speaks_of_a_fix(sentence):
            links.update(_ID.findall(sentence))
    return tuple(sorted(links - own))


def _speaks_of_a_fix(sentence: str) -> bool:
    if _INCOMPLETE.search(sentence):
        return True
    return bool(_BYPASS.search(sentence)) and not _COMPARISON.search(sentence)
