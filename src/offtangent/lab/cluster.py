"""A Dask cluster, watched while a run waits for it: Dask itself waits for ever, and in silence."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from offtangent._errors import InputError
from offtangent.lab.workers import ClusterLost, Workers

ASK = 2.0  # seconds between questions to the scheduler
SILENT = 30.0  # seconds after which one that does not answer is taken for lost, and the want of workers is told
CLOSE = 5.0  # seconds for a farewell
# Loggers that tell of a lost connection with tracebacks; `Cluster` tells it without.
LOUD = ("distributed.client", "tornado.application")


class Cluster(Workers):
    """The workers of a Dask client. A thread asks the scheduler how many there are; that is its pulse, too."""

    def __init__(self, client: Any, address: str):
        self._client, self._address = client, address
        self._executor = client.get_executor(pure=False, retries=3)
        self._futures: list[Future[Any]] = []
        self._heard = self._peopled = time.monotonic()  # when the scheduler answered last, and when it had workers
        self._told = False
        self._closed = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            future = self._executor.submit(fn, *args, **kwargs)
        except Exception as error:  # the client closes itself when it has no connection any more
            raise self._lost(f"does not take cells any more ({error})") from None
        self._futures.append(future)
        return future

    def look(self, cells: int) -> str | None:
        now = time.monotonic()
        if self._client.status != "running" or any(future.cancelled() for future in self._futures):
            raise self._lost("is gone")  # Dask forgets all it was to do when the connection breaks
        if now - self._heard > SILENT:
            raise self._lost(f"has not answered for {SILENT:g} s")
        self._futures = [future for future in self._futures if not future.done()]
        if now - self._peopled <= SILENT:
            self._told = False
        elif not self._told:
            self._told = True
            return (
                f"The Dask cluster at {self._address} has had no workers for {SILENT:g} s; {cells} cells wait for one. "
                f"Start some with 'dask worker {self._address}', or stop with Ctrl-C."
            )
        return None

    def close(self) -> None:
        self._closed.set()
        with suppress(Exception):  # there may be nobody to say farewell to
            self._client.close(timeout=CLOSE)

    def _lost(self, how: str) -> ClusterLost:
        return ClusterLost(f"The Dask scheduler at {self._address} {how}.")

    def _listen(self) -> None:
        while not self._closed.wait(ASK):
            with suppress(Exception):  # no connection: `look` sees how long it lasts
                workers = self._client.ncores()
                self._heard = time.monotonic()
                if workers:
                    self._peopled = self._heard


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The cluster at an address, refused in a sentence where there is none."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host
    except ImportError:
        raise InputError("--on dask needs dask.distributed: pip install 'offtangent[dask]'.") from None
    try:
        get_address_host(address)
    except Exception as error:
        raise InputError(
            f"--on dask:{address} is no address of a Dask scheduler ({error}). It is like dask:tcp://127.0.0.1:8786."
        ) from None
    _knock(address)
    for name in LOUD:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except Exception as error:
        raise _nobody(address, error) from None
    cluster = Cluster(client, address)
    try:
        yield cluster
    finally:
        cluster.close()


def _knock(address: str) -> None:
    """Ask whether anybody is at a TCP address at all; Dask itself takes long to give up, and then not quietly."""
    kind, _, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    if kind not in ("", "tcp", "tls"):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _nobody(address, error) from None


def _nobody(address: str, error: Exception) -> InputError:
    told = str(error) or type(error).__name__
    return InputError(f"No Dask scheduler answers at {address} ({told}). Start one with 'dask scheduler'.")
