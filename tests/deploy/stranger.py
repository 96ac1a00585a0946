"""Somebody who dials the coordinator with some name and some certificate: run as a process, it prints what happened to it.

    python -m tests.deploy.stranger NAME ADDRESS CERTIFICATE KEY AUTHORITY SECONDS [BYTES]

With BYTES it sends one message of this size when it is connected.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from dffl.deploy.messages import TO_SITE, decode
from dffl.deploy.network import COORDINATOR, Credentials, Link
from dffl.terminal import leave


def main() -> None:
    name, address, certificate, key, authority, seconds, *size = sys.argv[1:]
    log = logging.getLogger("stranger")
    link = Link(name, address, Credentials(Path(certificate), Path(key), Path(authority)), 2**30, log)
    link.start()
    deadline = time.monotonic() + float(seconds)
    while time.monotonic() < deadline:
        event = link.next(0.2)
        if event is None:
            continue
        print(event.what, event.peer, decode(event.content, TO_SITE).values if event.what == "message" else "", flush=True)
        if event.what == "up":
            sent = link.send(COORDINATOR, bytes(int(size[0])) if size else b"hello")
            print("sent" if sent else "not sent", flush=True)
    leave(0)


if __name__ == "__main__":
    main()
