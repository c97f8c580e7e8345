"""Asks an engine how it is: its health, and how many requests it still answers."""

import ssl

import httpx2

TIMEOUT_SECONDS = 1.0
RUNNING_SUFFIXES = (
    "num_requests_running",
    "num_requests_waiting",
    "num_running_reqs",
    "num_queue_reqs",
    "num_requests_active",
)
"""Ends of the metric names by which engines count requests that they hold (vLLM, SGLang, TensorRT-LLM)."""


class EngineProbe:
    """Requests to engines on this machine."""

    def __init__(self) -> None:
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # engines are asked over http: no authority is read
        self._client = httpx2.Client(timeout=TIMEOUT_SECONDS, trust_env=False, verify=nobody)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def health(self, address: str) -> str | None:
        """``None`` when the engine is healthy, else what is wrong."""
        try:
            status = self._client.get(f"http://{address}/health").status_code
        except httpx2.HTTPError as error:
            return f"/health does not answer ({type(error).__name__})"
        return None if status == httpx2.codes.OK else f"/health answers {status}"

    def running_requests(self, address: str) -> int | None:
        """Requests that the engine holds, or ``None`` when it does not say."""
        try:
            answer = self._client.get(f"http://{address}/metrics")
        except httpx2.HTTPError:
            return None
        return count_running(answer.text) if answer.status_code == httpx2.codes.OK else None


def count_running(metrics: str) -> int | None:
    """Running and waiting requests in Prometheus text, or ``None`` when no known metric is there."""
    found: list[float] = []
    for line in metrics.splitlines():
        if line.startswith("#"):
            continue
        name, _, rest = line.partition("{") if "{" in line else line.partition(" ")
        if name.endswith(RUNNING_SUFFIXES):
            found.append(float((rest.rpartition("}")[2] or rest).split()[0]))
    return round(sum(found)) if found else None
