"""A member with a good certificate that sends what it is told: run as a process, it reads one order in each line.

    python -m tests.deploy.member NAME ADDRESS CERTIFICATE KEY AUTHORITY

An order is JSON: ``contents``, a list of texts to send, and ``headers``, changes of what the carrier writes before each.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from dffl.deploy.network import COORDINATOR, Credentials, Link
from dffl.terminal import leave


def main() -> None:
    from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey

    name, address, *files = sys.argv[1:]
    link = Link(name, address, Credentials(*map(Path, files)), 2**30, logging.getLogger("member"))
    link.start()
    while (event := link.next(1.0)) is None or event.what != "up":
        pass
    sending: Any = link._cell._send_to_endpoint
    headers: dict[str, Any] = {}

    def forged(to_endpoint: Any, message: Any) -> Any:
        for key, value in headers.items():
            message.set_header(getattr(MessageHeaderKey, key), value)
        return sending(to_endpoint, message)

    link._cell._send_to_endpoint = forged
    for line in sys.stdin:
        order = json.loads(line)
        headers.clear()
        headers.update(order["headers"])
        for content in order["contents"]:
            link.send(COORDINATOR, content.encode())
    leave(0)


if __name__ == "__main__":
    main()
