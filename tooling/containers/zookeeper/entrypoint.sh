#!/bin/sh
# Writes the configuration of one server, and runs the command.
set -eu
cat >/etc/zookeeper/conf/zoo.cfg <<CONFIGURATION
dataDir=/data
dataLogDir=/datalog
clientPort=2181
tickTime=2000
admin.enableServer=false
CONFIGURATION
exec "$@"
