import { isIPv6 } from 'node:net';
import { booleanAt, entriesAt, numberAt, objectAt, stringAt, isJsonObject, type JsonObject } from '@nodepool/core';
import type { ConfigDocument } from './document.js';
import { checkWritten } from './empty-values.js';
import { checkPortText } from './port.js';
import type { ProblemReport } from './report.js';
import type { ZooKeeperConfig } from './types.js';

const DEFAULT_PORT = 2281;
const DEFAULT_TIMEOUT_SECONDS = 10;
/** The protocol has signed 32-bit milliseconds. */
const MAX_TIMEOUT_SECONDS = 2_147_483;
const HOST = /^(?:\[[^\]]+\]|[^:[\]\s/]+)$/;
/** Names that ZooKeeper accepts; it refuses controls, surrogates, private use and specials. */
// eslint-disable-next-line no-control-regex -- excludes control characters
const ZNODE_NAME = /^(?!\.{1,2}$)[^\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]+$/;

/** Reads the ZooKeeper endpoint. Settings of the secure file replace those of the main file. */
export function loadZooKeeper(
  main: ConfigDocument,
  secure: ConfigDocument | undefined,
  required: boolean,
  report: ProblemReport,
): ZooKeeperConfig {
  const mainRoot = rootOf(main);
  const document = secure !== undefined && entriesAt(rootOf(secure), 'zookeeper-servers').length > 0 ? secure : main;
  const entries = entriesAt(rootOf(document), 'zookeeper-servers');
  for (const { index, section } of entries) checkServer(document, index, section, report);
  const servers = entries.map(({ section }) => address(section));
  if (servers.length === 0 && required) {
    report.at(main, ['zookeeper-servers'], {
      expected: 'at least one ZooKeeper server',
      hint: 'name the servers here or in the secure file',
    });
  }
  const timeout = numberAt(mainRoot, 'zookeeper-timeout') ?? DEFAULT_TIMEOUT_SECONDS;
  if (timeout > MAX_TIMEOUT_SECONDS) {
    report.at(main, ['zookeeper-timeout'], { expected: `a number of at most ${MAX_TIMEOUT_SECONDS}` });
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
            verifyHostname: booleanAt(tls, 'verify-hostname') ?? true,
          },
    sessionTimeoutMs: timeout * 1000,
  };
}

function rootOf(document: ConfigDocument): JsonObject {
  return isJsonObject(document.value) ? document.value : {};
}

/** Reports values that no client accepts: a daemon could neither start nor continue with them. */
function checkServer(document: ConfigDocument, index: number, server: JsonObject, report: ProblemReport): void {
  const path = ['zookeeper-servers', index] as const;
  // A host without a value would silently be this machine.
  checkWritten(document, [...path, 'host'], 'the name or the address of a host', report);
  const host = hostOf(server);
  if (!isIPv6(host) && !HOST.test(host)) {
    report.at(document, [...path, 'host'], { expected: 'the name or the address of a host, without a port' });
  }
  checkPortText(document, [...path, 'port'], report);
  const chroot = normalizeChroot(stringAt(server, 'chroot') ?? '');
  if (
    !chroot
      .split('/')
      .slice(1)
      .every((name) => ZNODE_NAME.test(name))
  ) {
    report.at(document, [...path, 'chroot'], { expected: 'the path of a znode' });
  }
}

/** Returns the host; an empty string or `null` counts as absent. */
function hostOf(server: JsonObject): string {
  const host = stringAt(server, 'host') ?? '';
  return host === '' ? 'localhost' : host;
}

function address(server: JsonObject): string {
  const host = hostOf(server);
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
