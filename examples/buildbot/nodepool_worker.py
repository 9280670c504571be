"""A Buildbot worker on a node of Nodepool.

`nodepool request --format json` holds the node as long as its standard input is open, so the node is returned after the
build, after a crash of the master, and after the loss of the node. ssh starts `buildbot-worker` on the node.
"""

import json
import os
import shlex
import shutil
import tempfile

from buildbot.interfaces import LatentWorkerCannotSubstantiate, LatentWorkerFailedToSubstantiate
from buildbot.worker import AbstractLatentWorker
from twisted.internet import defer, protocol, reactor
from twisted.python import log

# Runs on the node. The worker ends with the connection of ssh, because nodes of some drivers outlive a build.
START_WORKER = """
set -e
master=$1 name=$2
IFS= read -r password
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
exec 3<&0
buildbot-worker create-worker --no-logrotate "$folder" "$master" "$name" "$password" >/dev/null
buildbot-worker start --nodaemon "$folder" >/dev/null &
worker=$!
{ cat <&3 >/dev/null; kill "$worker"; } &
wait "$worker"
"""


# Seconds.
END_TIMEOUT = 30


class Child(protocol.ProcessProtocol):
    """A child process whose output is read line by line. `ended` fires with its exit status."""

    def __init__(self, name, on_line=None):
        self.name = name
        self.on_line = on_line or self._log
        self.ended = defer.Deferred()
        self.is_running = True
        self._pending = b""

    def outReceived(self, data):
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self.on_line(line.decode("utf-8", "replace"))

    def errReceived(self, data):
        for line in data.decode("utf-8", "replace").splitlines():
            self._log(line)

    def processEnded(self, reason):
        self.is_running = False
        self.ended.callback(reason.value.exitCode)

    def close_input(self):
        if self.is_running:
            self.transport.closeStdin()

    @defer.inlineCallbacks
    def end(self):
        """Closes the standard input, which ends the process, and kills the process if it continues."""
        if not self.is_running:
            return
        self.close_input()
        killing = reactor.callLater(END_TIMEOUT, self.transport.signalProcess, "KILL")
        yield self.ended
        if killing.active():
            killing.cancel()

    def _log(self, line):
        log.msg(f"{self.name}: {line}")


class NodepoolWorker(AbstractLatentWorker):
    """A latent worker: a node of the label is requested for each build, and returned after it."""

    _lease = None
    _ssh = None
    _folder = None
    _attached = None

    def checkConfig(self, name, label, master, **kwargs):
        super().checkConfig(name, None, **self._split(kwargs)[1])

    def reconfigService(self, name, label, master, **kwargs):
        options, others = self._split(kwargs)
        self.label = label
        self.master_address = master
        self.nodepool = options.get("nodepool", ["nodepool"])
        self.identity = options.get("identity")
        self.user = options.get("user")
        self.start_timeout = options.get("start_timeout", 120)
        self.node_timeout = options.get("node_timeout", 3600)
        return super().reconfigService(name, self.getRandomPass(), **others)

    @staticmethod
    def _split(kwargs):
        own = ("nodepool", "identity", "user", "start_timeout", "node_timeout")
        options = {key: value for key, value in kwargs.items() if key in own}
        others = {key: value for key, value in kwargs.items() if key not in own}
        others.setdefault("build_wait_timeout", 0)
        return options, others

    @defer.inlineCallbacks
    def start_instance(self, build):
        try:
            node = yield self._request_node()
            yield self._start_worker(node)
            return True
        except Exception:
            yield self.stop_instance()
            raise

    @defer.inlineCallbacks
    def stop_instance(self, fast=False):
        ssh, lease = self._ssh, self._lease
        if ssh is not None:
            # The worker on the node ends before the node is returned.
            yield ssh.end()
        if lease is not None:
            yield lease.end()
        self._ssh = self._lease = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @defer.inlineCallbacks
    def attached(self, conn):
        yield super().attached(conn)
        if self._attached is not None:
            self._attached.callback(None)
            self._attached = None

    def _request_node(self):
        """Fires with the node once it is locked. The build is retried if there is none for the moment."""
        leased = defer.Deferred()

        def on_line(line):
            event = json.loads(line)
            if event["event"] == "leased":
                leased.callback(event["nodes"][0])
            elif event["event"] == "progress":
                log.msg(f"{self.name}: request {event['request']} is {event['state']}: {'; '.join(event['reasons'])}")
            elif event["event"] == "failed":
                log.msg(f"{self.name}: {event['reason']}")
                if not leased.called:
                    leased.errback(self._failure(event))

        def on_end(status):
            if not leased.called:
                leased.errback(LatentWorkerFailedToSubstantiate(self.name, f"nodepool ended with status {status}"))
            elif self._ssh is not None and self._lease is lease:
                # The node is lost, so the worker must not run on it any longer. Buildbot retries the build.
                self._ssh.close_input()

        lease = self._lease = Child(f"{self.name}: nodepool", on_line)
        lease.ended.addCallback(on_end)
        args = ["request", self.label, "--format", "json", "--until-eof", "--no-wait"]
        self._spawn(lease, [*self.nodepool, *args, "--timeout", str(self.node_timeout)])
        return leased

    def _failure(self, event):
        # No launcher can serve the label, so a retry of the build would fail too.
        final = event["code"] == "request-failed"
        kind = LatentWorkerCannotSubstantiate if final else LatentWorkerFailedToSubstantiate
        return kind(self.name, event["reason"])

    def _start_worker(self, node):
        """Fires once the worker on the node has connected to the master."""
        attached = self._attached = defer.Deferred()
        attached.addTimeout(self.start_timeout, reactor)

        def on_end(status):
            if not attached.called:
                self._attached = None
                message = f"the worker on node {node['id']} did not start: ssh ended with status {status}"
                attached.errback(LatentWorkerFailedToSubstantiate(self.name, message))

        ssh = self._ssh = Child(f"{self.name}: node {node['id']}")
        ssh.ended.addCallback(on_end)
        arguments = shlex.join([START_WORKER, "start-worker", self.master_address, self.name])
        self._spawn(ssh, [*self._ssh_command(node), f"exec /bin/sh -c {arguments}"])
        ssh.transport.write(f"{self.password}\n".encode())
        return attached

    def _ssh_command(self, node):
        """Returns the command line of ssh up to the remote command. It trusts the host keys of the node only."""
        host, port = node["address"], node["connection_port"] or 22
        self._folder = tempfile.mkdtemp(prefix="nodepool-worker-")
        known_hosts = os.path.join(self._folder, "known_hosts")
        with open(known_hosts, "w", encoding="utf-8") as file:
            for key in node["host_keys"]:
                file.write(f"{host if port == 22 else f'[{host}]:{port}'} {key}\n")
        options = ["BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={known_hosts}"]
        options += ["GlobalKnownHostsFile=/dev/null", "UpdateHostKeys=no", "ServerAliveInterval=15"]
        identity = [] if self.identity is None else ["-i", self.identity, "-o", "IdentitiesOnly=yes"]
        command = ["ssh", "-F", "none", "-T", *identity, *[word for option in options for word in ("-o", option)]]
        return [*command, "-p", str(port), "-l", self.user or node["username"], "--", host]

    @staticmethod
    def _spawn(child, command):
        reactor.spawnProcess(child, command[0], command, env=os.environ)
