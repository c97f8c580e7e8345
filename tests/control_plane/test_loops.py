"""Loops: a round that fails is told and tried again; stopping ends them all."""

import threading

from control_plane.loops.running import Loop, LoopRunner


def test_a_loop_outlives_a_failing_round_and_ends_when_told():
    looked, twice = [], threading.Event()

    def look():
        looked.append(1)
        if len(looked) == 1:
            raise OSError("disk full")
        twice.set()

    runner = LoopRunner((Loop("one", look, 0.01),))
    runner.first_round("one")
    runner.start()
    assert twice.wait(timeout=30)
    runner.stop()
    count = len(looked)
    assert not any(thread.is_alive() for thread in runner._threads)
    assert len(looked) == count
