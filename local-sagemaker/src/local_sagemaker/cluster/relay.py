"""The way from a job's network to the emulator and, by HTTPS, to the internet.

A job's network has no way out. Job init opens two listening sockets INSIDE it, on the
bridge, and hands them to this process, which still lives in the host's network: a
connection accepted there is carried on from here.

    10.88.0.1:4566  the emulator (AWS_EMULATOR_URL on an instance)
    10.88.0.1:3128  an HTTP CONNECT proxy (HTTPS_PROXY, PIP_PROXY)
    10.88.0.1:PORT  a service of this machine (LOCAL_SAGEMAKER_SERVICE)
"""

from __future__ import annotations

import configparser
import contextlib
import ipaddress
import os
import signal
import socket
import sys
import threading
from functools import partial
from urllib.parse import urlsplit

from local_sagemaker.cluster.spec import GATEWAY, Connectivity

EMULATOR_PORT = 4566
PROXY_PORT = 3128
WEB_PORTS = (80, 443)
# Not of the internet, but what every name resolves to where a VPN answers for the DNS (RFC 2544).
FAKE = ipaddress.ip_network("198.18.0.0/15")
PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", f"{sys.prefix}/pip.conf")
EMULATOR_URL = f"http://{GATEWAY}:{EMULATOR_PORT}"
PROXY_URL = f"http://{GATEWAY}:{PROXY_PORT}"


def open_listeners(channel: socket.socket, connectivity: Connectivity) -> None:
    """In the job's network: listen for what instances may reach, and send the sockets on."""
    ports = {b"e": EMULATOR_PORT} if connectivity.emulator else {}
    ports |= {b"p": PROXY_PORT} if connectivity.internet else {}
    ports |= {b"s": connectivity.service} if connectivity.service else {}
    listeners = [socket.create_server((GATEWAY, port), backlog=128) for port in ports.values()]
    kinds = b"".join(ports) or b"-"
    socket.send_fds(channel, [kinds], [listener.fileno() for listener in listeners])
    for listener in listeners:
        listener.close()
    channel.close()


def serve(channel: socket.socket, emulator_port: int, service_port: int) -> int:
    """In the host's network: take the sockets and serve them until killed."""
    ports = {"e": emulator_port, "s": service_port}
    kinds, fds, _, _ = socket.recv_fds(channel, 3, 3)
    channel.close()
    for kind, fd in zip(kinds.decode(), fds, strict=False):  # "-": there is none
        connect = partial(_to_loopback, ports[kind]) if kind in ports else _to_proxied
        listener = socket.socket(fileno=fd)
        threading.Thread(target=_accept, args=(listener, connect), daemon=True).start()
    while fds:
        signal.pause()
    return 0


def _accept(listener: socket.socket, connect) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_carry, args=(client, connect), daemon=True).start()


def _carry(client: socket.socket, connect) -> None:
    with contextlib.suppress(OSError, ValueError), client, connect(client) as server:
        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server)
        back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _to_loopback(port: int, client: socket.socket) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def _to_proxied(client: socket.socket) -> socket.socket:
    """Read a CONNECT request, answer it, and return the connection it asked for."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < 8192:
        data = client.recv(1)
        if not data:
            raise ValueError("the request ended early")
        head += data
    verb, target, *_ = head.decode("latin-1").split()
    if verb != "CONNECT":
        client.sendall(b"HTTP/1.1 405 Only CONNECT\r\nContent-Length: 0\r\n\r\n")
        raise ValueError(f"{verb} is not CONNECT")
    name, _, port = target.rpartition(":")
    try:
        server = _connect(name.strip("[]"), int(port))
    except PermissionError:
        client.sendall(b"HTTP/1.1 403 Only the internet's web\r\nContent-Length: 0\r\n\r\n")
        raise
    except OSError:
        client.sendall(b"HTTP/1.1 502 No connection\r\nContent-Length: 0\r\n\r\n")
        raise
    server.settimeout(None)
    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    return server


def _connect(name: str, port: int) -> socket.socket:
    """Connect to a web server of the internet. Raises PermissionError for anything else.

    What listens on this machine or in its local network trusts whoever is there; a job is not. An
    index which the settings of pip or uv name is an exception, wherever it is.
    """
    named = (name, port) in _indexes()
    if not named and port not in WEB_PORTS:
        raise PermissionError(f"port {port}")
    for *kind, _, address in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
        if not named and not _is_of_the_internet(str(address[0])):
            raise PermissionError(f"{name} is {address[0]}")
        with contextlib.suppress(OSError):  # another of its addresses may answer
            server = socket.socket(*kind)
            server.settimeout(30)
            server.connect(address)
            return server
    raise OSError(f"no connection to {name}")


def _is_of_the_internet(address: str) -> bool:
    """Whether an address is a public one, and not of an interface of this machine."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.is_multicast or not (parsed.is_global or parsed in FAKE):
        return False
    family = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))  # only possible on this machine
        except OSError:
            return True
    return False


def _indexes() -> set[tuple[str, int]]:
    settings = [pair for pair in os.environ.items() if pair[0].startswith(("PIP_", "UV_"))]
    files = configparser.ConfigParser(interpolation=None)
    with contextlib.suppress(configparser.Error, OSError, ValueError):
        files.read(PIP_FILES)
    settings += [pair for section in files.sections() for pair in files.items(section)]
    indexes = set()
    for name, value in settings:
        if name.upper().replace("-", "_").endswith(("INDEX_URL", "INDEX", "FIND_LINKS")):
            for url in map(urlsplit, value.split()):
                if url.hostname:
                    indexes.add((url.hostname, url.port or (443 if url.scheme == "https" else 80)))
    return indexes
