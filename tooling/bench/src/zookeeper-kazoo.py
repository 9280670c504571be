"""Measures kazoo. Arguments: servers, folder, operations in flight, number of operations. Prints JSON lines."""

import json
import sys
import threading
import time

from kazoo.client import KazooClient

DATA = b'x' * 100
WARM_UP = 3000


def measure(count, in_flight, begin):
    """Runs begin(0) to begin(count - 1), that many at a time."""
    room = threading.Semaphore(in_flight)
    failures = []

    def done(result):
        if result.exception is not None:
            failures.append(result.exception)
        room.release()

    cpu, began = time.process_time(), time.monotonic()
    for index in range(count):
        room.acquire()
        begin(index).rawlink(done)
    for _ in range(in_flight):
        room.acquire()
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    if failures:
        raise failures[0]
    return {'perSecond': count / seconds, 'cpuPerOperation': cpu * 1e6 / count}


def measure_all(client, folder, in_flight, count, tell):
    client.create(folder)

    def path(index):
        return '%s/%d' % (folder, index)

    def transaction(index):
        request = client.transaction()
        for _ in range(10):
            request.set_data(path(index), DATA)
        return request.commit_async()

    work = [
        ('create', lambda index: client.create_async(path(index), DATA)),
        ('set', lambda index: client.set_async(path(index), DATA)),
        ('get', lambda index: client.get_async(path(index))),
        ('set of one znode', lambda index: client.set_async(folder, DATA)),
        ('get of one znode', lambda index: client.get_async(folder)),
        (
            'two gets and a set',
            lambda index: client.set_async(path(index), DATA) if index % 3 == 2 else client.get_async(path(index)),
        ),
        ('transaction of 10', transaction),
        ('delete', lambda index: client.delete_async(path(index))),
    ]
    for operation, begin in work:
        line = {'operation': operation, 'inFlight': in_flight}
        line.update(measure(count, in_flight, begin))
        tell(line)


def report(line):
    print(json.dumps(line), flush=True)


def main(servers, folder, in_flight, operations):
    client = KazooClient(hosts=servers)
    client.start()
    client.create(folder)
    # A daemon runs for months: what is measured is not the first second of it.
    measure_all(client, folder + '/warm-up', 100, WARM_UP, lambda line: None)
    measure_all(client, folder + '/measured', in_flight, operations, report)
    client.stop()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
