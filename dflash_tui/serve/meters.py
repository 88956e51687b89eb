"""Collects what ``/metrics`` says, for Prometheus: counters since the start, named as vLLM names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from engine.events import EngineReady, FinishReason, Step, TurnStarted

LABELS = ("model_name", "engine")
FIRST_TOKEN_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
REQUEST_SECONDS = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960)
"""Upper bounds of the histogram of durations, in seconds: vLLM's."""
FINISHED = {"stop": "stop", "length": "length", "context": "length", "stopped": "abort", "error": "error"}


@dataclass(slots=True)
class RoundTotals:
    """Totals of all rounds: plain numbers, made into metrics only when somebody asks, for there are many rounds."""

    drafts: int = 0
    drafted: int = 0
    accepted: int = 0
    written: int = 0
    by_position: list[int] = field(default_factory=list)

    def add(self, step: Step) -> None:
        self.written += step.num_emitted
        if step.num_verified:
            self.drafts += 1
            self.drafted += step.num_verified
            self.accepted += step.num_accepted
            for index in range(step.num_accepted):
                self.by_position[index] += 1


class Meters(Collector):
    """Counts what happens on one server with one model. Its methods are called on the server's thread."""

    def __init__(self, ready: EngineReady) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._labels = (ready.target, "0")
        self.rounds = RoundTotals(by_position=[0] * (ready.max_block_size - 1))
        self._prompt = self._counter("prompt_tokens", "Tokens of prompts")
        self._looked_up = self._counter("prefix_cache_queries", "Tokens of prompts looked for in the caches")
        self._reused = self._counter("prefix_cache_hits", "Tokens of prompts that the caches still held")
        self._requests = Counter(
            "vllm:request_success", "Requests whose answer ended, by the reason", (*LABELS, "finished_reason"),
            registry=self.registry,
        )  # fmt: skip
        for reason in sorted(set(FINISHED.values())):
            self._requests.labels(*self._labels, reason)
        self._refused = Counter(
            "dflash:requests_refused", "Requests that got an error, by its status", (*LABELS, "status"),
            registry=self.registry,
        )  # fmt: skip
        self.running = self._gauge("num_requests_running", "Requests being answered")
        self.waiting = self._gauge("num_requests_waiting", "Requests in the queue")
        self._first_token = self._histogram(
            "time_to_first_token_seconds", "From request to first token", FIRST_TOKEN_SECONDS
        )
        self._queued = self._histogram("request_queue_time_seconds", "Waiting in the queue", REQUEST_SECONDS)
        self._whole = self._histogram(
            "e2e_request_latency_seconds", "From request to the answer's end", REQUEST_SECONDS
        )
        self._waited = 0.0

    def collect(self) -> Iterator[Metric]:
        """The metrics of rounds, for the registry."""
        rounds = self.rounds
        for name, about, value in (
            ("spec_decode_num_drafts", "Rounds that verified a draft", rounds.drafts),
            ("spec_decode_num_draft_tokens", "Drafted tokens that were verified", rounds.drafted),
            ("spec_decode_num_accepted_tokens", "Drafted tokens that were accepted", rounds.accepted),
            ("generation_tokens", "Tokens of answers", rounds.written),
        ):
            made = CounterMetricFamily(f"vllm:{name}", about, labels=LABELS)
            made.add_metric(self._labels, value)
            yield made
        by_position = CounterMetricFamily(
            "vllm:spec_decode_num_accepted_tokens_per_pos", "Accepted tokens by their place in the draft",
            labels=(*LABELS, "position"),
        )  # fmt: skip
        for index, count in enumerate(rounds.by_position):
            by_position.add_metric((*self._labels, str(index)), count)
        yield by_position

    def begin(self, waited: float) -> None:
        """Counts a request that leaves the queue after so many seconds."""
        self._waited = waited
        self._queued.observe(waited)

    def started(self, event: TurnStarted) -> None:
        self._prompt.inc(event.num_prompt_tokens)
        self._looked_up.inc(event.num_prompt_tokens)
        self._reused.inc(event.num_reused_tokens)

    def step(self, step: Step) -> None:
        self.rounds.add(step)
        if step.index == 0:
            self._first_token.observe(self._waited + step.time)

    def finished(self, reason: FinishReason, wanted: bool, seconds: float) -> None:
        """Counts an answer that ended. ``wanted``: whether a request's own stop text ended it, which counts as an end
        like any."""
        self._requests.labels(*self._labels, "stop" if wanted else FINISHED[reason]).inc()
        self._whole.observe(seconds)

    def vanished(self) -> None:
        """Counts a client that went while it waited."""
        self._requests.labels(*self._labels, FINISHED["stopped"]).inc()

    def refused(self, status: int) -> None:
        self._refused.labels(*self._labels, str(status)).inc()

    def text(self) -> bytes:
        """All metrics in the text format that Prometheus reads."""
        return generate_latest(self.registry)

    def _counter(self, name: str, about: str) -> Counter:
        return Counter(f"vllm:{name}", about, LABELS, registry=self.registry).labels(*self._labels)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(f"vllm:{name}", about, LABELS, registry=self.registry).labels(*self._labels)

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
        made = Histogram(f"vllm:{name}", about, LABELS, registry=self.registry, buckets=buckets)
        return made.labels(*self._labels)
