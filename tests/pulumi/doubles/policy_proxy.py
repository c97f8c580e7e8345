"""What a language host puts between the engine and a policy pack (pulumi/pulumi#21684).

The engine tells the stack's configuration by a call, packs in Python read it from their environment: the pack is
started when that call comes, and every call goes on to it.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from pulumi.runtime.proto import analyzer_pb2 as messages

_SERVICE = "/pulumirpc.Analyzer/"
_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_STARTS_SECONDS = 60


class PolicyProxy(grpc.GenericRpcHandler):
    """One policy pack: started once it is configured, and asked from then on."""

    def __init__(self, engine: str, pack: str, folder: str) -> None:
        self._command = [sys.executable, "-u", "-m", "pulumi.policy", engine, pack]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: grpc.Channel | None = None
        self._server = grpc.server(ThreadPoolExecutor(max_workers=16), options=_UNLIMITED)
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def service(self, handler_call_details: Any) -> grpc.RpcMethodHandler:
        method = handler_call_details.method
        answer: Callable[[bytes, grpc.ServicerContext], bytes] = {
            f"{_SERVICE}Handshake": lambda _request, _context: b"",
            f"{_SERVICE}ConfigureStack": self._configured,
        }.get(method, lambda request, context: self._forwarded(method, request, context))
        return grpc.unary_unary_rpc_method_handler(answer)

    def end(self) -> None:
        """Ends the pack and the proxy."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        self._server.stop(grace=0)

    def _configured(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self._start(messages.AnalyzerStackConfigureRequest.FromString(request))
        if self._channel is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the policy pack ended before it told its port")
        return self._forwarded(f"{_SERVICE}ConfigureStack", request, context)

    def _start(self, stack: messages.AnalyzerStackConfigureRequest) -> None:
        environment = {
            **os.environ,
            "PULUMI_ORGANIZATION": stack.organization,
            "PULUMI_PROJECT": stack.project,
            "PULUMI_STACK": stack.stack,
            "PULUMI_DRY_RUN": str(stack.dry_run).lower(),
            "PULUMI_CONFIG": json.dumps(dict(stack.config)),
        }
        self._process = subprocess.Popen(
            self._command, cwd=self._folder, env=environment, stdout=subprocess.PIPE, stderr=sys.stderr
        )
        assert self._process.stdout is not None
        port = self._process.stdout.readline().decode().strip()
        threading.Thread(target=self._process.stdout.read, daemon=True).start()
        if port:
            self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=_UNLIMITED)
            grpc.channel_ready_future(self._channel).result(timeout=_STARTS_SECONDS)

    def _forwarded(self, method: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        if self._channel is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the policy pack is not configured yet")
        try:
            return self._channel.unary_unary(method)(request)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
