import signal
import subprocess
import sys
from pathlib import Path

from deltatape.store.reader import open_tape

RECORDER = """
import sys
from pathlib import Path
from deltatape.clock import SystemClock
from deltatape.model.exchange import Source
from deltatape.store.writer import TapeWriter
from deltatape.tape.tap import TapeTap

writer = TapeWriter.create(
    Path(sys.argv[1]), "run", clock=SystemClock(), tool="", source=Source.GATEWAY, alarm=print
)
tap = TapeTap(writer.put)
for number in range(1_000_000):
    tap.note(writer.now_ns(), f"{number} " + "x" * 300)
    print(number, flush=True)
"""


def test_what_was_flushed_is_on_the_tape_of_a_killed_recorder(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RECORDER, tmp_path], stdout=subprocess.PIPE, text=True
    ) as recorder:
        assert recorder.stdout is not None
        told = [recorder.stdout.readline() for _ in range(500)]
        recorder.send_signal(signal.SIGKILL)
        told += recorder.stdout.readlines()
    last = int([line for line in told if line.endswith("\n")][-1])
    tape = open_tape(tmp_path / "run.tape")
    assert not tape.stopped
    assert sum(1 for _ in tape.records()) >= last + 1
