"""A kazoo client that acquires and releases a lock on commands from its standard input."""

import sys

from kazoo.client import KazooClient

client = KazooClient(hosts=sys.argv[1])
client.start(timeout=20)
lock = client.Lock(sys.argv[2], "kazoo")
print("ready", flush=True)
for line in sys.stdin:
    command = line.strip()
    if command == "acquire":
        lock.acquire(timeout=20)
        print("acquired", flush=True)
    elif command == "try":
        print("acquired" if lock.acquire(blocking=False) else "refused", flush=True)
    elif command == "persist":
        lock.acquire(timeout=20, ephemeral=False)
        print("acquired", flush=True)
    elif command == "contenders":
        print(",".join(lock.contenders()), flush=True)
    elif command == "release":
        lock.release()
        print("released", flush=True)
client.stop()
