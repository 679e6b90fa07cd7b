"""Free ports of this machine."""

import socket


def free_addresses(count: int) -> list[str]:
    """Return addresses at ports that are free now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in held]
    for server in held:
        server.close()
    return addresses
