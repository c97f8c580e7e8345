"""The port for metrics: the same for the process that serves and for the one that watches workers."""

import asyncio
import os
import signal

import pytest

from gateway.errors import GatewayError
from gateway.exchange import HttpResponse
from gateway.metrics_port import MetricsPort
from gateway.stop_signal import on_stop_signal

pytestmark = pytest.mark.asyncio


def page(request):
    if request.target == "/fails":
        raise ValueError
    return HttpResponse(200, (), request.target.encode())


async def asked(port, target):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_it_serves_a_page_and_a_fault_of_it_is_a_500():
    port = MetricsPort(page)
    server = await port.listen("127.0.0.1", 0)
    number = server.sockets[0].getsockname()[1]
    assert (await asked(number, "/metrics")).endswith(b"/metrics")
    assert (await asked(number, "/fails")).startswith(b"HTTP/1.1 500 ")
    with pytest.raises(GatewayError, match=f"cannot listen on 127.0.0.1:{number} for metrics.*another metrics_port"):
        await MetricsPort(page).listen("127.0.0.1", number)
    server.close()
    await port.drain(1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_is_told_to_stop_by_either_signal(number):
    told = asyncio.Event()
    on_stop_signal(told.set)
    try:
        os.kill(os.getpid(), number)
        await asyncio.wait_for(told.wait(), 5)
    finally:
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(each)
