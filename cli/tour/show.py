"""The whole of `enginehouse demo`: a fleet is opened, the tour is taken, everything is ended."""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from cli.exits import CommandError, Exit
from cli.tour.evidence import Evidence, StepReport
from cli.tour.hints import hints
from cli.tour.local_world import LocalWorld
from cli.tour.pace import pace_of
from cli.tour.report import Report
from cli.tour.steps.exercise import ADVISORY, prepared
from cli.tour.tour import STEPS, Step, take
from cli.tour.world import Journey, World
from local.down import running
from local.errors import LocalFleetError
from local.layout import Layout, state_home
from local.ports import is_listening
from local.programs import EngineKind
from local.record import engines
from local.start import RunningFleet, Wishes, opened
from local.stop_request import Interrupted, StopRequest

PREPARING = ("advisories", "deployments", "tenants")
"""The steps that make a fleet worth trying out."""
WAIT_SECONDS = 3600.0
SIGNAL_CODES = 128
"""An exit code above it names the signal that ended the demo."""

WorldOf = Callable[[RunningFleet], World]


@dataclass(frozen=True, slots=True)
class Options:
    """What the person asked for."""

    once: bool = False
    yes: bool = False
    opens_browser: bool = False
    engine: EngineKind = "simulated"
    state: Path | None = None
    """``None`` = a new folder that is removed afterwards."""
    keep: bool = False


@dataclass(slots=True)
class Show:
    """One run of the demo."""

    options: Options
    environment: Mapping[str, str]
    home: Path
    report: Report
    agree: Callable[[str], bool]
    clock: Callable[[], float] = time.monotonic
    world_of: WorldOf | None = None
    """How tests put a fault into the world; ``None`` = the world as it is."""
    steps: tuple[Step, ...] = STEPS
    reports: list[StepReport] = field(default_factory=list)

    def run(self) -> int:
        """Take the tour; the exit code."""
        begin = self.clock()
        layout = self._layout()
        # What an earlier run left in a folder of the person's would refuse the version that this one starts with.
        (layout.advisories / f"{ADVISORY}.json").unlink(missing_ok=True)
        try:
            with StopRequest() as stop, stop.handling_signals():
                code = self._run(layout, stop)
        finally:
            self._clean(layout)
        if self.options.once:
            self.report.summary(self.reports, self.clock() - begin, interrupted=code > SIGNAL_CODES)
        return code

    def _run(self, layout: Layout, stop: StopRequest) -> int:
        ports: list[int] = []
        begin = self.clock()
        try:
            with opened(
                layout,
                Wishes(engine=self.options.engine),
                python=sys.executable,
                environment=self.environment,
                stop=stop,
                tell=self.report.tell,
            ) as fleet:
                self._started(fleet, begin)
                self._inside(fleet, stop)
                ports = _ports(fleet)
                begin = self.clock()
        except Interrupted as error:
            self.report.tell(f"{error}; everything of the fleet has been ended")
            return SIGNAL_CODES + error.signum
        except LocalFleetError as error:
            self._add(StepReport(*self._name_of_error(ports), self.clock() - begin, None, str(error)))
            return Exit.FAILED
        if self.options.once:
            self._ended(layout, ports, begin)
        else:
            self.report.tell("everything of the fleet has been ended")
        return Exit.FAILED if any(report.error is not None for report in self.reports) else Exit.DONE

    def _name_of_error(self, ports: list[int]) -> tuple[str, str]:
        return ("ending", "Everything is ended") if ports else ("start", "The local fleet starts")

    def _started(self, fleet: RunningFleet, begin: float) -> None:
        names = [process.name for process in fleet.supervisor.record.processes]
        lines = (f"{', '.join(names)} run; state in {fleet.layout.state}",)
        evidence = Evidence(lines + tuple(f"{name}: {url}" for name, url in fleet.urls.items()), {"urls": fleet.urls})
        self._add(StepReport("start", "The local fleet starts", self.clock() - begin, evidence))

    def _inside(self, fleet: RunningFleet, stop: StopRequest) -> None:
        fleet.supervisor.watch_in_background()
        with stop.interrupting():
            lines = self._take(fleet)
        if self.options.once or self.reports[-1].error is not None:
            return
        for line in lines:
            self.report.say(line)
        while not stop.wait(WAIT_SECONDS):
            pass

    def _take(self, fleet: RunningFleet) -> tuple[str, ...]:
        """Take the steps; what to try afterwards."""
        journey = Journey(pace=pace_of(self.options.engine))
        steps = self.steps if self.options.once else [step for step in self.steps if step.name in PREPARING]
        world = self.world_of(fleet) if self.world_of else self._local_world(fleet)
        with closing(world):
            take(
                steps,
                world,
                journey,
                clock=self.clock,
                begun=lambda step: self.report.begun(step.title),
                ended=self._add,
            )
            if self.options.once or self.reports[-1].error is not None:
                return ()
            record = prepared(world, journey)
        opens_browser = self.options.opens_browser
        return hints(fleet, journey, record, opens_browser=opens_browser, environment=self.environment)

    def _local_world(self, fleet: RunningFleet) -> World:
        token = fleet.operator_token
        return LocalWorld(fleet, token, agree=self.agree, environment=self.environment)

    def _ended(self, layout: Layout, ports: list[int], begin: float) -> None:
        left = running(layout, None)
        open_ports = [port for port in ports if is_listening(port)]
        error = None
        if left or open_ports:
            error = f"still there: processes {[process.pid for process in left]}, ports {open_ports}"
        evidence = Evidence((f"no process is left, and none of {len(ports)} ports answers",), {"ports": ports})
        title = "Everything is ended"
        self._add(StepReport("ending", title, self.clock() - begin, None if error else evidence, error))

    def _add(self, report: StepReport) -> None:
        self.reports.append(report)
        self.report.ended(report)

    def _layout(self) -> Layout:
        if self.options.state is not None:
            return Layout(self.options.state.expanduser().absolute())
        parent = state_home(self.environment, self.home)
        try:
            parent.mkdir(parents=True, exist_ok=True)
            return Layout(Path(tempfile.mkdtemp(prefix="demo-", dir=parent)))
        except OSError as error:
            raise CommandError(
                f"no folder for the demo can be made in {parent}: {error.strerror}. Give one with --state DIR."
            ) from None

    def _clean(self, layout: Layout) -> None:
        """Remove the demo's own folder when nothing of it runs and nobody wants to look into it."""
        failed = any(report.error is not None for report in self.reports)
        if self.options.state is not None or self.options.keep or failed or running(layout, None):
            if layout.state.is_dir():
                self.report.tell(f"the state folder stays: {layout.state}")
            return
        shutil.rmtree(layout.state, ignore_errors=True)


def _ports(fleet: RunningFleet) -> list[int]:
    rooms = [port for process in fleet.supervisor.record.processes for port in process.ports]
    return rooms + [engine.port for engine in engines(fleet.layout.engines) if engine.port is not None]
