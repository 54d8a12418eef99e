"""A Locust user with websocket-client, as is usual: it sends and sleeps, a greenlet listens. Set by environment."""

import itertools
import os
import time

import gevent
import websocket
from locust import User, task

URL, SESSIONS, CHUNKS = os.environ["URL"], int(os.environ["SESSIONS"]), int(os.environ["CHUNKS"])
PAYLOAD, INTERVAL_S = bytes(int(os.environ["BYTES"])), float(os.environ["INTERVAL_S"])
STAGGER_S, ABSOLUTE = float(os.environ["STAGGER_S"]), os.environ["SCHEDULE"] == "absolute"
numbers, left = itertools.count(), itertools.count(1)


class Speaker(User):
    """One session, then nothing more."""

    @task
    def speak(self) -> None:
        gevent.sleep(STAGGER_S * next(numbers) / SESSIONS)
        service = websocket.create_connection(URL)
        listening = gevent.spawn(self.listen, service)
        zero = time.monotonic()
        for index in range(CHUNKS):
            service.send_binary(PAYLOAD)
            gevent.sleep(max(0.0, zero + (index + 1) * INTERVAL_S - time.monotonic()) if ABSOLUTE else INTERVAL_S)
        service.send("eof")
        listening.join()
        if next(left) == SESSIONS:
            gevent.spawn(self.environment.runner.quit)  # not from here: it ends this greenlet first
        gevent.sleep(3600)

    def listen(self, service: websocket.WebSocket) -> None:
        """Fire a request event for the final, as plug-ins do."""
        while message := service.recv():
            if "final" in message:
                self.environment.events.request.fire(
                    request_type="WS", name="final", response_time=0, response_length=len(message), exception=None
                )
                return
