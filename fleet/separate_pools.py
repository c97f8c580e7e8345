"""Speed of prefill and decode in separate pools, as intervals; nobody measured any, so all of it is extrapolated.

Decode is the step of `fleet.latency_fit` without the prompts that hold it up. Prefill is a prompt alone, with a queue
before it and the transfer of its cache behind it. Each side makes what the fit of `fleet.throughput` says of its part
of the work; the pair makes what the slower side does, or the network between them.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from fleet.kv_transfer import Transfer, Uplink, transfer_of
from fleet.latency import Basis, Latency, Speed, speed_of
from fleet.latency_fit import EngineCoefficients, around, prompt_seconds, tpot_seconds
from fleet.latency_interval import Interval
from fleet.model import Missing
from fleet.serving import Serving
from fleet.throughput import beyond, prompt_at_saturation, saturated_step, undisturbed, unmeasured_saturation

NOT_MEASURED = "no measured point with separate pools"
ROUNDS, SETTLED = 32, 1e-3
"""Requests in flight against a step that depends on them, until a round changes a thousandth."""
HALVINGS = 20
"""Of the rates at which some requests are in flight."""


class Limit(StrEnum):
    """What makes the least of a pair."""

    PREFILL = "prefill"
    DECODE = "decode"
    TRANSFER = "transfer"


@dataclass(frozen=True, slots=True)
class Side:
    """One replica of a pool."""

    serving: Serving
    uplink: Uplink | Missing
    """What a GPU has of the network, or why that is not known."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """How many of each side there are."""

    prefill: int
    decode: int


@dataclass(frozen=True, slots=True)
class FirstToken:
    """What the time to the first token is made of, in seconds."""

    prompt: float
    """The prompt itself, with what the engine takes beside it."""
    waiting: float
    """For prompts of others."""
    transfer: float
    """Of its cache."""
    step: float
    """The first one of decode."""

    @property
    def total(self) -> float:
        """Of all four, which follow each other."""
        return self.prompt + self.waiting + self.transfer + self.step


@dataclass(frozen=True, slots=True)
class PairLatency:
    """The latency of a pair at a load."""

    latency: Latency
    requests_per_second: float
    prefill_utilisation: float
    """Part of the time in which a prefill replica reads prompts."""
    concurrency: int | None
    """Requests in flight on one decode replica; ``None`` = they would pile up."""
    first_token: FirstToken | None
    """``None`` = not known, see the reasons of the latency."""


@dataclass(frozen=True, slots=True)
class PairThroughput:
    """What a pair makes at saturation: output tokens a second."""

    total: Interval
    prefill: Interval
    """What the prompts of the prefill pool would allow."""
    decode: Interval
    """What the decode pool would make."""
    limited_by: Limit
    basis: Basis
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class SeparatePools:
    """One replica of each side, worked out once; then any number of them under any load."""

    prefill: Speed
    decode: Speed
    transfer: Transfer | Missing

    @cached_property
    def prompt_seconds(self) -> float:
        """How long a prompt keeps the ranks that read it from the next one, when there is always a next one."""
        return prompt_at_saturation(self.prefill)

    @cached_property
    def prompts_per_second(self) -> float:
        """Of one prefill replica: data-parallel ranks and pipeline stages each have a prompt of their own."""
        plan = self.prefill.serving.plan
        return plan.data * plan.pipeline / self.prompt_seconds

    @cached_property
    def answers_per_second(self) -> float:
        """Of one decode replica: its saturated batch over the steps of an answer, no prompt in between."""
        fit, plan = self.decode.fit, self.decode.serving.plan
        step = saturated_step(self.decode.work, fit.saturated.largest_batch)
        seconds = fit.saturated.decode_factor * tpot_seconds(step, fit.step, self._engine)
        return step.batch * plan.data * plan.pipeline / seconds / step.output_tokens

    def most(self, replicas: Replicas) -> tuple[float, Limit]:
        """Requests a second that the pair can take, and what allows no more."""
        sides = [
            (replicas.prefill * self.prompts_per_second, Limit.PREFILL),
            (replicas.decode * self.answers_per_second, Limit.DECODE),
        ]
        if isinstance(self.transfer, Transfer):
            links = replicas.prefill * self.transfer.sent_per_second, replicas.decode * self.transfer.taken_per_second
            sides.append((min(links), Limit.TRANSFER))
        return min(sides, key=lambda side: side[0])

    @cached_property
    def most_of_each(self) -> tuple[float, float]:
        """Requests a second that one prefill and one decode replica can take, with what goes between them."""
        prefill, decode, link = self.prompts_per_second, self.answers_per_second, self.transfer
        if isinstance(link, Missing):
            return prefill, decode
        return min(prefill, link.sent_per_second), min(decode, link.taken_per_second)

    def throughput(self, replicas: Replicas) -> PairThroughput:
        """At saturation: the smaller of what the sides make."""
        fit, engine, tokens = self.decode.fit, self.decode.serving.engine, self._output_tokens
        spread = beyond(fit, engine)
        most, limit = self.most(replicas)
        reasons = (NOT_MEASURED, *unmeasured_saturation(self.prefill), *unmeasured_saturation(self.decode))
        return PairThroughput(
            total=around(most * tokens, spread),
            prefill=around(replicas.prefill * self.prompts_per_second * tokens, spread),
            decode=around(replicas.decode * self.answers_per_second * tokens, spread),
            limited_by=limit,
            basis="extrapolated",
            reasons=tuple(dict.fromkeys((*reasons, *self._network_reasons))),
        )

    def at_rate(self, requests_per_second: float, replicas: Replicas) -> PairLatency:
        """With requests that come at some rate, 0 = one alone; from what the pair can take on there is no latency."""
        most, limit = self.most(replicas)
        busy = self._utilisation(requests_per_second, replicas)
        if requests_per_second >= most:
            message = f"{requests_per_second:.3g} requests a second are too many: {limit} allows {most:.3g}"
            return PairLatency(Latency(None, None, "none", (message,)), requests_per_second, busy, None, None)
        flight = self._in_flight(requests_per_second / replicas.decode)
        return self._answer(requests_per_second, busy, flight, self._first_token(busy, flight))

    def in_flight(self, requests: float, replicas: Replicas) -> PairLatency:
        """With so many requests in flight over both pools, the next one coming when one has gone.

        The rate is the one at which all of them are under way (Little's law), or the most that the pair can take; then
        the rest waits.
        """
        low, high = 0.0, self.most(replicas)[0]
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            is_more = middle * self._residence(middle, replicas) > requests
            low, high = (low, middle) if is_more else (middle, high)
        rate = (low + high) / 2
        busy, flight = self._utilisation(rate, replicas), self._in_flight(rate / replicas.decode)
        first = self._first_token(busy, flight)
        rest = requests / rate - self._output_tokens * self.tpot(flight) - first.total
        return self._answer(rate, busy, flight, replace(first, waiting=first.waiting + max(0.0, rest)))

    def tpot(self, concurrency: float) -> float:
        """Seconds of a step with some requests in flight on one decode replica."""
        return tpot_seconds(self.decode.work.at(concurrency), self.decode.fit.step, self._engine)

    def _utilisation(self, requests_per_second: float, replicas: Replicas) -> float:
        return requests_per_second / (replicas.prefill * self.prompts_per_second)

    def _residence(self, requests_per_second: float, replicas: Replicas) -> float:
        """From the arrival of a request to its last token."""
        flight = self._in_flight(requests_per_second / replicas.decode)
        first = self._first_token(self._utilisation(requests_per_second, replicas), flight)
        return first.total + self._output_tokens * self.tpot(flight)

    def _in_flight(self, requests_per_second: float) -> float:
        """On one decode replica (Little's law); at least the one whose latency is asked for."""
        flight, before = 1.0, 0.0
        for _ in range(ROUNDS):
            if flight - before <= SETTLED * flight:
                break
            before = flight
            flight = max(1.0, requests_per_second * self._output_tokens * self.tpot(flight))
        return flight

    def _first_token(self, busy: float, flight: float) -> FirstToken:
        """Of a prefill pool that is busy for a part of the time; a transfer that nobody can tell takes nothing here."""
        fit, serving = self.prefill.fit, self.prefill.serving
        step = self.prefill.work.at(1)
        factor = fit.first_token.expert_factor if step.has_experts else 1.0
        return FirstToken(
            prompt=fit.first_token_engine(serving.engine).fixed_seconds
            + factor * prompt_seconds(step, fit.first_token),
            waiting=waiting_seconds(self.prompt_seconds / serving.plan.pipeline, busy),
            transfer=self.transfer.seconds if isinstance(self.transfer, Transfer) else 0.0,
            step=self.tpot(flight),
        )

    def _answer(self, requests_per_second: float, busy: float, flight: float, first: FirstToken) -> PairLatency:
        fit, engine = self.decode.fit, self.decode.serving.engine
        known = [speed.serving.gpu.name in fit.gpus for speed in (self.prefill, self.decode)]
        reasons = (NOT_MEASURED, *self.prefill.reasons(1), *self.decode.reasons(math.ceil(flight)))
        is_whole = isinstance(self.transfer, Transfer)
        ttft = around(first.total, fit.ttft.beyond(is_known_gpu=all(known), engine=engine)) if is_whole else None
        latency = Latency(
            tpot=around(first.step, fit.tpot.beyond(is_known_gpu=known[1], engine=engine)),
            ttft=ttft,
            basis="extrapolated",
            reasons=tuple(dict.fromkeys((*reasons, *self._network_reasons))),
        )
        return PairLatency(latency, requests_per_second, busy, math.ceil(flight), first if is_whole else None)

    @property
    def _output_tokens(self) -> int:
        return max(1, self.decode.serving.output_tokens)

    @cached_property
    def _engine(self) -> EngineCoefficients:
        return undisturbed(self.decode.fit.step_engine(self.decode.serving.engine))

    @property
    def _network_reasons(self) -> tuple[str, ...]:
        return (self.transfer.message,) if isinstance(self.transfer, Missing) else self.transfer.doubts


def separate_pools(prefill: Side, decode: Side) -> SeparatePools | Missing:
    """Both sides of one model and engine, under the same requests; or which figure is missing."""
    if not decode.serving.model.is_generative:
        return Missing("latency", "is_generative", "the model generates no text: there is nothing to decode")
    reading, answering = speed_of(prefill.serving), speed_of(decode.serving)
    if isinstance(reading, Missing):
        return reading
    if isinstance(answering, Missing):
        return answering
    return SeparatePools(reading, answering, _transfer(prefill, decode))


def waiting_seconds(service_seconds: float, utilisation: float) -> float:
    """Mean wait of a prompt for those before it: ``S x rho / (2 (1 - rho))``, the M/D/1 queue.

    A model. Prompts come at random (Poisson), each takes the same time ``S``, one after the other: the formula of
    Pollaczek and Khinchine for the mean wait, ``rho (S^2 + var) / (2 S (1 - rho))``, without variance. Prompts of
    unlike lengths wait longer; a router that knows which replica is idle lets them wait less.
    """
    return service_seconds * utilisation / (2.0 * (1.0 - utilisation))


def _transfer(prefill: Side, decode: Side) -> Transfer | Missing:
    sender, taker = prefill.uplink, decode.uplink
    if isinstance(sender, Missing):
        return sender
    if isinstance(taker, Missing):
        return taker
    return transfer_of(prefill.serving, decode.serving, sender, taker)
