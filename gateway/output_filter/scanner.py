"""Reads one text as it grows and decides it from the front: what passes, and what is edited."""

import re
from dataclasses import dataclass

from gateway.output_filter.glances import Glance
from gateway.output_filter.linear_regex import EncodedText
from gateway.output_filter.masks import Masks
from gateway.output_filter.matcher import Found, Matcher
from gateway.output_filter.normal_form import Writing, read_units

NUMBER_IN_JSON = "0"
"""What stands in JSON instead of a value outside of a string: valid before and after a sign, a point, an exponent."""
_JSON = Writing.JSON
"""Asked for every piece; a member of an enumeration takes 0.2 us to be looked up."""
_BARE_WORD = re.compile(r"(?:[^\W\d_]|[':()&])*-?\Z")
"""What is no part of a value worth hiding: no digits, nothing that joins the parts of an address or of a key."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of the text, in characters from its beginning, that something else stands for."""

    start: int
    end: int
    text: str
    name: str = ""
    """The class of the value; empty for the rest of one that was already counted."""


class Scanner:
    """Decides a text piece by piece as it would be decided whole.

    Law: for every chunking, the edits are those of the whole text, unless time ran out (``expire``); never more than
    the matcher's width is undecided, an escape that is cut apart.
    """

    __slots__ = (
        "_answered", "_cuts", "_end", "_in_string", "_is_prose", "_is_simple", "_is_sunk", "_long_word", "_masks",
        "_matcher", "_normal", "_place", "_swallow", "_unread", "_writing", "edits",
    )  # fmt: skip

    def __init__(self, matcher: Matcher, masks: Masks, writing: Writing | None = Writing.PLAIN) -> None:
        """``writing`` None = JSON if the text begins with a brace."""
        self.edits: list[Edit] = []
        self._matcher = matcher
        self._long_word = matcher.quiet.long_word
        self._masks = masks
        self._writing = writing
        self._normal = ""  # one decided unit, if there is one, and the undecided ones
        self._cuts: list[int] | None = None  # where each unit begins in the text; None = one character each
        self._place = 0  # the first undecided unit
        self._end = 0  # of the units, in the text
        self._unread = ""
        self._answered = 0  # the text before it has left already, though it may yet be part of a value
        self._is_sunk = False  # and what left was a mask
        self._swallow: re.Pattern[str] | None = None
        self._in_string = False
        self._is_simple = False  # no escapes, nothing answered early, nothing swallowed
        self._is_prose = False  # what is not forgotten yet; what waits is one word

    @property
    def decided(self) -> int:
        """The characters from the beginning of the text that nothing will change any more."""
        return max(self._in_text(self._place), self._answered)

    @property
    def prose_decided(self) -> int:
        """``decided``, after prose."""
        return self._end - len(self._normal) + self._place

    def feed(self, text: str) -> bool:
        """The next piece; whether it was prose, in which nothing is edited."""
        if self._is_simple and self._pass_prose(text):
            return True
        if self._read(text, is_end=False):
            self._decide(is_end=False)
        self._is_simple = self._may_pass_prose()
        self._is_prose = self._is_simple and self._is_word_left()
        return False

    def feed_glance(self, glance: Glance) -> bool:
        """The next piece, where it is prose as seen before; False = it has to be fed."""
        text, rest, held = glance
        normal = self._normal
        if not self._is_prose or len(normal) + len(text) >= self._long_word:
            return False
        if not rest:
            if not held and self._place == len(normal):  # a joint begins no word
                return False
            self._end += len(text)
            self._normal = normal + text
            return True
        self._end += len(text)
        if self._writing is _JSON:
            self._in_string ^= normal.count('"') % 2 == 1
        self._normal, self._place = rest, 1
        return True

    def finish(self) -> None:
        """Nothing comes any more."""
        self._read("", is_end=True)
        self._decide(is_end=True)

    def expire(self) -> None:
        """The time of what is held is over: a bare word leaves, anything else is masked by what it may become.

        What left is remembered: if it grows into a value, the rest of the value is masked.
        """
        start, end = self.decided, self._end + len(self._unread)
        if start >= end:
            return
        # In JSON, half of an escape must not stand before a mask.
        is_whole = not self._unread or self._place == len(self._normal) or self._writing is not _JSON
        if not self._is_sunk and is_whole and self._is_bare_word():
            self._answer(end)
            return
        likely = self._matcher.likely(EncodedText(self._normal), self._place)
        name, label = (likely.name, likely.label) if likely else ("", "HELD")
        found = Found(self._place, len(self._normal), name, label)
        self.edits.append(Edit(start, end, *(("", "") if self._is_sunk else (self._mask(found), name))))
        self._answer(end)
        self._is_sunk = True

    def release_word(self) -> None:
        """A held word of letters alone leaves."""
        if not self._is_sunk and not self._unread and self._is_bare_word():
            self._answer(self._end)

    def _answer(self, end: int) -> None:
        self._answered = end
        self._is_simple = self._is_prose = False

    def _is_bare_word(self) -> bool:
        if self._place == len(self._normal):
            return True
        is_bare = _BARE_WORD.match(self._normal, self._place) is not None
        return is_bare and not self._matcher.may_become_own(EncodedText(self._normal), self._place)

    def _may_pass_prose(self) -> bool:
        is_plain = self._writing is not None and not self._unread and self._cuts is None
        return is_plain and self._swallow is None and not self._answered

    def _is_word_left(self) -> bool:
        """Whether what is not forgotten is prose again, and what waits is its last word."""
        quiet = self._matcher.quiet
        return quiet.is_prose(self._normal) and quiet.word(self._normal) == self._place

    def _pass_prose(self, text: str) -> bool:
        """Most of what models write: words and marks, and only the last word waits."""
        normal = self._normal + text
        quiet = self._matcher.quiet
        start = quiet.hold(normal, text, was_prose=self._is_prose)
        if start is None:
            return False
        self._is_prose = True
        if start and normal[start - 1] in quiet.joints:
            start = self._chain_hold(normal)
        self._end += len(text)
        if start > self._place:
            if self._writing is _JSON:
                self._in_string ^= normal.count('"', 0, start - 1) % 2 == 1
            self._normal, self._place = normal[start - 1 :], 1
        else:
            self._normal = normal
        return True

    def _chain_hold(self, normal: str) -> int:
        """From where on prose that ends in a chain of words may still become a value."""
        start = self._matcher.quiet.word(normal)
        if start is not None:
            return start
        self._is_prose = False
        return self._matcher.held_from(EncodedText(normal), max(self._matcher.quiet.chain(normal), self._place))

    def _read(self, text: str, *, is_end: bool) -> bool:
        """Takes the next units over; whether there are any."""
        raw = self._unread + text if self._unread else text
        writing = self._writing or self._guess(raw)
        units = read_units(raw, writing, is_end=is_end)
        cuts = units.cuts
        if cuts is not None or self._cuts is not None:
            if self._cuts is None:
                self._cuts = list(range(self._end - len(self._normal), self._end))
            self._cuts += [self._end + cut for cut in (cuts if cuts is not None else range(len(units.normal)))]
        self._normal += units.normal
        self._end += units.read
        self._unread = raw[units.read :]
        return bool(units.normal)

    def _guess(self, text: str) -> Writing:
        begin = text.lstrip()[:1]
        if not begin:
            return Writing.PLAIN
        self._writing = Writing.JSON if begin == "{" else Writing.PLAIN
        return self._writing

    def _decide(self, *, is_end: bool) -> None:
        if self._swallow is not None and not self._swallow_more(is_end=is_end):
            return
        self._search(is_end=is_end)
        self._trim()

    def _search(self, *, is_end: bool) -> None:
        encoded, length = EncodedText(self._normal), len(self._normal)
        hold = length if is_end else self._matcher.held_from(encoded, self._place)
        finds = self._matcher.finds(encoded)
        while (found := finds.first(self._place, hold)) is not None:
            self._settle(found)
            self._place = found.end
            if found.tail is not None and found.end == length and not is_end:
                self._swallow = found.tail
                return
            if found.end > hold:
                hold = length if is_end else self._matcher.held_from(encoded, found.end)
        self._place = max(self._place, hold)

    def _settle(self, found: Found) -> None:
        """Edits a value, or the part of it that has not left yet."""
        begin, end = self._in_text(found.start), self._in_text(found.end)
        start = max(begin, self._answered)
        if start < end:
            is_rest = begin < self._answered and self._is_sunk
            self.edits.append(Edit(start, end, *(("", "") if is_rest else (self._mask(found), found.name))))

    def _mask(self, found: Found) -> str:
        if self._writing is _JSON and not self._is_in_string(found.start):
            return NUMBER_IN_JSON
        return self._masks.text(found.name, found.label, self._normal[found.start : found.end])

    def _swallow_more(self, *, is_end: bool) -> bool:
        """Takes what still belongs to the last value; whether it is over."""
        found = self._swallow.match(self._normal, self._place) if self._swallow else None
        if found is not None:
            self.edits.append(Edit(self._in_text(self._place), self._in_text(found.end()), ""))
            self._place = found.end()
        if self._place == len(self._normal) and not is_end:
            self._trim()
            return False
        self._swallow = None
        return True

    def _trim(self) -> None:
        """Forgets what is decided, less one unit, which tells what stands before the rest."""
        if self._answered <= self._in_text(self._place):
            self._answered, self._is_sunk = 0, False
        drop = self._place - 1
        if drop <= 0:
            return
        if self._writing is _JSON:
            self._in_string ^= self._normal.count('"', 0, drop) % 2 == 1
        self._normal = self._normal[drop:]
        self._place -= drop
        if self._cuts is not None:
            cuts = self._cuts[drop:]
            is_plain = cuts == list(range(self._end - len(cuts), self._end))
            self._cuts = None if is_plain else cuts

    def _is_in_string(self, place: int) -> bool:
        return self._in_string ^ (self._normal.count('"', 0, place) % 2 == 1)

    def _in_text(self, place: int) -> int:
        if self._cuts is None:
            return self._end - len(self._normal) + place
        return self._cuts[place] if place < len(self._cuts) else self._end
