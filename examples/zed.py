"""Plays the companion Zed in a room: a companion whose words come from this program, and not from a model.

Start a server and then this program (Python 3.9 or newer):

    pip install websockets
    python3 examples/zed.py

Say "zed, are you there?" in the lobby. The server may be stopped and started again meanwhile.

TERTULIA_SERVER names another server (default 127.0.0.1:7878), TERTULIA_ROOM another room (default lobby), and TERTULIA_TOKEN is the admin
token, if the server has one.
"""

import json
import os
import time
import urllib.error
import urllib.request

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

SERVER = os.environ.get("TERTULIA_SERVER", "127.0.0.1:7878")
ROOM = os.environ.get("TERTULIA_ROOM", "lobby")
TOKEN = os.environ.get("TERTULIA_TOKEN")
ME = "zed"

HEADERS = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
SECONDS_BETWEEN_ATTEMPTS = 3


def request(method, path, body=None):
    """Sends a request. Returns the answer, or None if the server refuses: it says why."""
    headers = {**HEADERS, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    call = urllib.request.Request(f"http://{SERVER}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(call, timeout=10) as answer:
            return json.loads(answer.read() or "null")
    except urllib.error.HTTPError as refused:
        print(f"{method} {path}: {refused.read().decode()}")
        return None


def listed(companion):
    """A companion as a request lists it: one of the server by its id, an external one with its names."""
    if not companion["external"]:
        return companion["id"]
    return {key: companion[key] for key in ("id", "external", "name", "aliases")}


def join_room():
    """Adds Zed to the companions of the room."""
    rooms = (request("GET", "/api/rooms") or {}).get("rooms", [])
    room = next((room for room in rooms if room["id"] == ROOM), None)
    if room is None:
        raise SystemExit(f"there is no room {ROOM} on {SERVER}")
    others = [listed(companion) for companion in room["companions"] if companion["id"] != ME]
    request("PUT", f"/api/rooms/{ROOM}", {"guild": room["guild"], "companions": [*others, {"id": ME, "external": True}]})


def vote(message_id):
    """Says that Zed wants to speak about this message. A program that wants to listen sends the state `listen`."""
    request("POST", f"/api/rooms/{ROOM}/states", {
        "from": ME,
        "messageId": message_id,
        "state": "speak",
        "importance": 7,
        "selected": False,
    })


def speak(message_id, text):
    request("POST", f"/api/rooms/{ROOM}/statements", {"from": ME, "message_id": message_id, "text": text})


def is_asked(opened):
    """Whether an open round waits for Zed's vote."""
    return ME in opened.get("missing", opened.get("asked", []))


def play():
    """Follows the room until the connection ends."""
    join_room()
    asked_about = None
    with connect(f"ws://{SERVER}/api/live?room={ROOM}", additional_headers=HEADERS) as live:
        print(f"Zed is in {ROOM}")
        for line in live:
            event = json.loads(line)
            # The first event shows the rounds that were open before.
            opened = event["state"]["rounds"] if event["event"] == "hello" else [event]
            for asking in filter(is_asked, opened):
                asked_about = str(asking["message_id"])
                vote(asked_about)
            if event["event"] == "respond" and event["companion"] == ME and asked_about:
                speak(asked_about, f"I heard: {event['messages'][-1]}")


def main():
    while True:
        try:
            play()
            print("the server has closed the connection")
        except (OSError, WebSocketException) as problem:
            print(f"{SERVER} cannot be reached: {problem}")
        time.sleep(SECONDS_BETWEEN_ATTEMPTS)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
