/** The ZooKeeper part of the configuration. */

import { isIPv6 } from 'node:net';
import { entriesAt, numberAt, objectAt, stringAt, isJsonObject, type JsonObject } from '@nodepool/core';
import type { ConfigDocument } from './document.js';
import type { ProblemReport } from './report.js';
import type { ZooKeeperConfig } from './types.js';

const DEFAULT_PORT = 2281;
const DEFAULT_TIMEOUT_SECONDS = 10;

/** Reads the ZooKeeper endpoint. Settings of the secure file replace those of the main file. */
export function loadZooKeeper(
  main: ConfigDocument,
  secure: ConfigDocument | undefined,
  required: boolean,
  report: ProblemReport,
): ZooKeeperConfig {
  const mainRoot = rootOf(main);
  const document = secure !== undefined && entriesAt(rootOf(secure), 'zookeeper-servers').length > 0 ? secure : main;
  const servers = entriesAt(rootOf(document), 'zookeeper-servers').map(({ section }) => address(section));
  if (servers.length === 0 && required) {
    report.at(main, ['zookeeper-servers'], {
      expected: 'at least one ZooKeeper server',
      hint: 'name the servers here or in the secure file',
    });
  }
  const tls =
    objectAt(secure === undefined ? {} : rootOf(secure), 'zookeeper-tls') ?? objectAt(mainRoot, 'zookeeper-tls');
  return {
    servers,
    chroot: chrootOf(document, report),
    tls:
      tls === undefined
        ? undefined
        : {
            certFile: stringAt(tls, 'cert') ?? '',
            keyFile: stringAt(tls, 'key') ?? '',
            caFile: stringAt(tls, 'ca') ?? '',
          },
    sessionTimeoutMs: (numberAt(mainRoot, 'zookeeper-timeout') ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
  };
}

function rootOf(document: ConfigDocument): JsonObject {
  return isJsonObject(document.value) ? document.value : {};
}

function address(server: JsonObject): string {
  const host = stringAt(server, 'host') ?? 'localhost';
  const port = numberAt(server, 'port') ?? DEFAULT_PORT;
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Returns the common chroot of all servers. Servers without a chroot use that of the other servers. */
function chrootOf(document: ConfigDocument, report: ProblemReport): string {
  let chroot = '';
  for (const { index, section } of entriesAt(rootOf(document), 'zookeeper-servers')) {
    const own = normalizeChroot(stringAt(section, 'chroot') ?? '');
    if (own === '' || own === chroot) continue;
    if (chroot === '') chroot = own;
    else {
      report.at(document, ['zookeeper-servers', index, 'chroot'], {
        expected: `the same chroot as the other servers, ${JSON.stringify(chroot)}`,
      });
    }
  }
  return chroot;
}

function normalizeChroot(chroot: string): string {
  const inner = chroot
    .split('/')
    .filter((part) => part !== '')
    .join('/');
  return inner === '' ? '' : `/${inner}`;
}
