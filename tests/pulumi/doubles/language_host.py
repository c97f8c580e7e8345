"""The language host of Python as the engine sees it: starts programs and policy packs with the Python that runs it."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from shutil import which

from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import language_pb2 as messages
from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2

from tests.pulumi.doubles.policy_proxy import PolicyProxy
from tests.pulumi.doubles.serving import serve

ENGINE = sys.argv[-1]
SHOWN_ALREADY = 32


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """What the engine asks for when it previews and updates; everything else is refused by gRPC itself."""

    def Handshake(self, request, context):
        return messages.LanguageHandshakeResponse()

    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version="3.274.1")

    def GetRequiredPackages(self, request, context):
        return messages.GetRequiredPackagesResponse()

    def RuntimeOptionsPrompts(self, request, context):
        return messages.RuntimeOptionsResponse()

    def InstallDependencies(self, request, context):
        yield messages.InstallDependenciesResponse()

    def About(self, request, context):
        return messages.AboutResponse(executable=sys.executable, version=sys.version.split()[0])

    def GetProgramDependencies(self, request, context):
        return messages.GetProgramDependenciesResponse()

    def Cancel(self, request, context):
        return Empty()

    def Run(self, request, context):
        program = str(Path(request.info.program_directory, request.info.entry_point))
        done = start(*exec_words(request), program, env=program_environment(request), cwd=request.pwd)
        for stream, target in ((done.stdout, sys.stdout), (done.stderr, sys.stderr)):
            threading.Thread(target=copy, args=(stream, target), daemon=True).start()
        code = done.wait()
        if code == SHOWN_ALREADY:
            return messages.RunResponse(bail=True)
        return messages.RunResponse(error=f"the program ended with exit code {code}" if code else "")

    def RunPlugin(self, request, context) -> Iterator[messages.RunPluginResponse]:
        if request.kind != "analyzer":
            raise NotImplementedError(f"plugins of kind {request.kind} are not started here")
        proxy = PolicyProxy(request.args[0], request.info.program_directory, request.pwd)
        over = threading.Event()
        context.add_callback(over.set)
        yield messages.RunPluginResponse(stdout=f"{proxy.port}\n".encode())
        over.wait()
        proxy.end()


def exec_words(request: messages.RunRequest) -> tuple[str, ...]:
    """The command that Pulumi's own host starts a program with."""
    found = which("pulumi-language-python-exec")
    if found is None:
        raise FileNotFoundError("pulumi-language-python-exec is not on PATH; make tools puts it into .tools/pulumi")
    options = {
        "monitor": request.monitor_address,
        "engine": ENGINE,
        "project": request.project,
        "stack": request.stack,
        "organization": request.organization,
        "root_directory": request.info.root_directory,
        "pwd": request.pwd,
        "dry_run": str(request.dryRun).lower(),
        "parallel": str(request.parallel),
    }
    return (sys.executable, found, *(word for name, value in options.items() for word in (f"--{name}", value)))


def program_environment(request: messages.RunRequest) -> dict[str, str]:
    """The environment that carries the stack's configuration."""
    secret = json.dumps(list(request.configSecretKeys))
    config = json.dumps(dict(request.config))
    return {**os.environ, "PULUMI_CONFIG": config, "PULUMI_CONFIG_SECRET_KEYS": secret}


def start(*words: str, env: dict[str, str], cwd: str) -> subprocess.Popen:
    return subprocess.Popen(words, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def copy(source, target) -> None:
    for line in source:
        target.write(line.decode(errors="replace"))
        target.flush()


def main() -> None:
    serve(lambda server: language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageHost(), server))
