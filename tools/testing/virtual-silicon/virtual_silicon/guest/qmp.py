# SPDX-License-Identifier: GPL-2.0
"""The emulator's control socket (QMP): faults into a running guest, its counters."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from ..errors import GuestError, UsageError
from ..machine import faults

#: Path of the model in QEMU's tree of objects.
MODEL = "/objects/vs0"


class Monitor:
    """One connection; to be used in a with statement."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        self._file = self._socket.makefile("r", encoding="utf-8")
        self._answer()	# the greeting
        self.execute("qmp_capabilities")

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *args: object) -> None:
        self._socket.close()

    def _answer(self) -> dict[str, Any]:
        """The next that is no event."""
        for line in self._file:
            message = json.loads(line)
            if "event" not in message:
                return message
        raise GuestError("the emulator has closed its control socket")

    def execute(self, command: str, **arguments: object) -> Any:
        self._socket.sendall(json.dumps(
            {"execute": command, "arguments": arguments}).encode() + b"\n")
        answer = self._answer()
        if "error" in answer:
            raise UsageError(answer["error"]["desc"])
        return answer["return"]

    def fault(self, line: str) -> None:
        """A line as in a fault file, from now on."""
        self.execute("virtual-silicon-fault", **faults.parse(line))

    def counters(self) -> dict[str, Any]:
        """What model.json has at the end, as of now."""
        return json.loads(self.execute("qom-get", path=MODEL, property="counters"))
