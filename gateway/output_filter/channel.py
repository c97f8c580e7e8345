"""One running text of an answer, of which each event brings a piece."""

from collections import Counter
from dataclasses import dataclass, field

from fleet.output_policy import FailureMode, FilterPolicy, Mode, Moderation
from gateway.output_filter.glances import Glance
from gateway.output_filter.masks import Masks
from gateway.output_filter.matcher import Matcher
from gateway.output_filter.normal_form import Writing
from gateway.output_filter.policy import MODERATION, detectors_of, modes_of
from gateway.output_filter.scanner import Edit, Scanner
from gateway.output_filter.sentences import Question, SentenceGate
from gateway.output_filter.text_filter import edited, filter_whole


class CompiledPolicy:
    """A policy ready for use; to be kept, since it takes a few tenths of a second to build."""

    __slots__ = ("failure_mode", "filters_requests", "hashes", "hold_seconds", "matcher", "moderation", "modes")

    def __init__(self, policy: FilterPolicy) -> None:
        self.matcher = Matcher(detectors_of(policy))
        self.modes = modes_of(policy)
        self.failure_mode: FailureMode = policy.failure_mode
        self.hold_seconds = policy.hold_seconds
        self.moderation: Moderation | None = policy.moderation
        self.filters_requests = policy.filters_requests
        self.hashes = Mode.HASH in self.modes.values()


@dataclass(slots=True)
class Answer:
    """What the filter knows of one answer."""

    policy: CompiledPolicy
    masks: Masks
    counts: Counter[str] = field(default_factory=Counter)
    """Values by class."""
    blocked: str | None = None
    """The class that ended it; None = nothing did."""
    questions: list[Question] = field(default_factory=list)
    """Sentences that are not judged yet and were not taken yet."""
    _asked: dict[int, tuple["Channel", int, int]] = field(default_factory=dict)
    _next_question: int = 0

    def whole(self, text: str, writing: Writing | None, *, is_counted: bool = True) -> str:
        """A text of its own, filtered."""
        edits = filter_whole(text, self.policy.matcher, self.masks, writing)
        if not edits:
            return text
        for edit in edits:
            self.counts[edit.name] += is_counted
            if self.blocks(edit):
                self.blocked = self.blocked or edit.name
        return edited(text, 0, edits)

    def blocks(self, edit: Edit) -> bool:
        """Whether an answer ends before it."""
        return bool(edit.name) and self.masks.mode(edit.name) is Mode.BLOCK

    def ask(self, channel: "Channel", start: int, end: int, text: str) -> None:
        """A sentence of a running text waits for a verdict."""
        self.questions.append(Question(self._next_question, text))
        self._asked[self._next_question] = (channel, start, end)
        self._next_question += 1

    def verdict(self, number: int, *, may_pass: bool) -> None:
        """The verdict on a sentence; one that is not waited for any more is ignored."""
        if number in self._asked:
            channel, start, end = self._asked.pop(number)
            channel.judge(start, end, may_pass=may_pass)
            self.counts[MODERATION] += not may_pass

    def let_all_pass(self) -> None:
        """No verdict came, and the route says that the sentences then pass."""
        for number in list(self._asked):
            self.verdict(number, may_pass=True)
        self.questions.clear()


class Channel:
    """A running text: pieces in, and each piece out once it is decided."""

    __slots__ = ("_answer", "_edits", "_gate", "_is_counted", "_scanner", "decided", "has_edits", "length")

    def __init__(self, answer: Answer, writing: Writing | None, *, is_counted: bool = True) -> None:
        self.length = 0
        self.decided = 0
        """The characters from the beginning that nothing will change any more."""
        self.has_edits = False
        """Whether anything in a piece that is not taken yet may be edited."""
        self._answer = answer
        self._edits: list[Edit] = []
        self._is_counted = is_counted
        self._scanner = Scanner(answer.policy.matcher, answer.masks, writing)
        moderation = answer.policy.moderation if is_counted else None
        self._gate = SentenceGate(moderation.window) if moderation else None

    def feed(self, text: str) -> None:
        """The next piece."""
        self.length += len(text)
        is_prose = self._scanner.feed(text)
        if self._gate is None and is_prose:
            self.decided = self._scanner.prose_decided
            return
        if self._gate is not None:
            self._gate.feed(text)
        self._take()

    def feed_glance(self, glance: Glance) -> None:
        """The next piece, which is prose as seen before."""
        if self._gate is not None or not self._scanner.feed_glance(glance):
            self.feed(glance.text)
            return
        self.length += len(glance.text)
        if glance.rest:  # otherwise the word goes on, and nothing more is decided
            self.decided = self.length - glance.held

    def finish(self) -> None:
        """It ends here."""
        self._scanner.finish()
        self._take(is_end=True)

    def expire(self, end: int) -> None:
        """What comes before a place has been held for too long; a sentence that it is in is judged as it is."""
        if self._scanner.decided < end:
            self._scanner.expire()
        self._take(is_end=self._gate is not None and self._gate.asked < end)

    def release_word(self) -> None:
        """Another text goes on; a bare word need not wait."""
        self._scanner.release_word()
        self._take()

    def piece(self, text: str, start: int) -> tuple[str, str | None]:
        """A decided piece that began there, and the class that ends the answer within it; pieces are taken in order."""
        end = start + len(text)
        edits = [edit for edit in self._edits if edit.start < end and edit.end > start]
        self._edits = [edit for edit in self._edits if edit.end > end]
        self.has_edits = bool(self._edits)
        for place, edit in enumerate(edits):
            if self._answer.blocks(edit) and edit.start >= start:
                return edited(text[: edit.start - start], start, edits[:place]), edit.name
        return (edited(text, start, edits) if edits else text), None

    def judge(self, start: int, end: int, *, may_pass: bool) -> None:
        """The verdict on a sentence."""
        if self._gate is None:
            return
        if not may_pass:
            self._edits = sorted([Edit(start, end, "", MODERATION), *self._edits], key=lambda edit: edit.start)
            self.has_edits = True
        self._gate.judge(start, may_pass=may_pass)
        self.decided = self._gate.passed

    def _take(self, *, is_end: bool = False) -> None:
        self.decided = self._scanner.decided
        if self._scanner.edits:
            if self._is_counted:
                self._answer.counts.update(edit.name for edit in self._scanner.edits if edit.name)
            self._edits += self._scanner.edits
            self.has_edits = True
            self._scanner.edits.clear()
        if self._gate is not None:
            for start, end, text in self._gate.cut(self.decided, is_end=is_end):
                edits = [edit for edit in self._edits if edit.start < end and edit.end > start]
                self._answer.ask(self, start, end, edited(text, start, edits))
            self.decided = self._gate.passed
