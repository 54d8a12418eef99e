"""The target's name and its addresses, in the order in which a session would try them: TCP, and closed at once."""

import asyncio
import os
import socket
import time
from typing import Final, NamedTuple

from loadbench.doctor.row import Row

SLOW_S: Final = 0.2
GIVE_UP_S: Final = 2.0  # as a session does before it tries the name's next address
MOST: Final = 8


class Tried(NamedTuple):
    """One address: how long connecting took, or why it failed."""

    address: str
    took_s: float | None
    why: str = ""


async def contact(host: str, port: int) -> list[Row]:
    """A row for the name, one for its addresses. Nothing is sent."""
    begun = time.monotonic()
    try:
        found = await asyncio.wait_for(
            asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM), GIVE_UP_S * 5
        )
    except (OSError, TimeoutError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error) or "no answer"
        return [Row(name="target's name", state="problem", found=f"{host}: {why}", advice="check the name and the DNS")]
    took_s = time.monotonic() - begun
    addresses = list(dict.fromkeys((family, place) for family, _, _, _, place in found))[:MOST]
    return [_name(host, len(addresses), took_s), judged([await _tried(*address) for address in addresses])]


def judged(tried: list[Tried]) -> Row:
    """What sessions will meet: each tries the addresses in this order, and waits for the first before the second."""
    found = ", then ".join(f"{one.address} {_outcome(one)}" for one in tried)
    first, reached = tried[0], [one for one in tried if one.took_s is not None]
    row = {"name": "target's addresses", "found": found, "needed": f"the first one within {SLOW_S * 1000:g} ms"}
    if not reached:
        advice = "nobody can be reached there from this machine"
        return Row(**row, state="problem", advice=advice)
    if first.took_s is None:
        advice = f"every session tries {first.address} first and in vain; write {reached[0].address} into target.url"
        return Row(**row, state="warning", advice=f"{advice}, or repair the name's addresses (IPv6 without a route?)")
    if first.took_s > SLOW_S:
        return Row(**row, state="warning", advice="connecting alone takes that long: a distant or busy target")
    return Row(**row, state="ok")


def _name(host: str, count: int, took_s: float) -> Row:
    slow = took_s > SLOW_S
    return Row(
        name="target's name",
        state="warning" if slow else "ok",
        found=f"{host} has {count} address{'es' if count > 1 else ''}, after {took_s * 1000:.0f} ms",
        needed=f"within {SLOW_S * 1000:g} ms",
        advice="each session resolves the name itself: a cache on this machine helps" if slow else "",
    )


def _outcome(one: Tried) -> str:
    return one.why if one.took_s is None else f"{one.took_s * 1000:.0f} ms"


async def _tried(family: int, place: tuple[object, ...]) -> Tried:
    host, port = str(place[0]), place[1]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    begun = time.monotonic()
    with socket.socket(socket.AddressFamily(family), socket.SOCK_STREAM) as plug:
        plug.setblocking(False)
        try:
            await asyncio.wait_for(asyncio.get_running_loop().sock_connect(plug, place), GIVE_UP_S)
        except TimeoutError:
            return Tried(address, None, f"no answer within {GIVE_UP_S:g} s")
        except OSError as error:
            return Tried(address, None, os.strerror(error.errno).lower() if error.errno else str(error))
        return Tried(address, time.monotonic() - begun)
