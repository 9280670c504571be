/** The syntax of `servers`, and the order of connection attempts. */

import { describe, expect, it } from '@jest/globals';
import { Chroot } from '../../src/client/paths.js';
import { resolveOptions } from '../../src/client/options.js';
import { parseServers, ServerList } from '../../src/client/server-list.js';
import { connect } from '../../src/index.js';

describe('a list of servers', () => {
  it.each([
    ['zk1:2181', [['zk1', 2181]], ''],
    ['zk1', [['zk1', 2281]], ''],
    [
      'zk1:1,zk2:2, zk3',
      [
        ['zk1', 1],
        ['zk2', 2],
        ['zk3', 2281],
      ],
      '',
    ],
    [
      '[::1]:2181,[2001:db8::1]',
      [
        ['::1', 2181],
        ['2001:db8::1', 2281],
      ],
      '',
    ],
    ['::1', [['::1', 2281]], ''],
    [
      '10.0.0.1:2181,zk.example.org:2182/nodepool/here',
      [
        ['10.0.0.1', 2181],
        ['zk.example.org', 2182],
      ],
      '/nodepool/here',
    ],
    [
      ['zk1:1', 'zk2:2'],
      [
        ['zk1', 1],
        ['zk2', 2],
      ],
      '',
    ],
  ])('%j is parsed', (text, servers, chroot) => {
    const parsed = parseServers(text, 2281);
    expect(parsed.servers.map(({ host, port }) => [host, port])).toEqual(servers);
    expect(parsed.chroot).toBe(chroot);
  });

  it.each(['', ',', 'zk1:', 'zk1:0', 'zk1:65536', 'zk1:port', ':2181', '[::1', 'zk 1:2181', 'zk1:1:2', '/chroot'])(
    '%j is rejected',
    (text) => {
      expect(() => parseServers(text, 2181)).toThrow(expect.objectContaining({ code: 'invalid-argument' }));
    },
  );

  it('is tried cyclically, in an order from the random source', () => {
    const { servers } = parseServers('a,b,c', 2181);
    const draws = [0.9, 0.1, 0.5];
    const list = new ServerList(servers, () => draws.shift() ?? 0);
    expect(Array.from({ length: 6 }, () => list.take().host)).toEqual(['b', 'c', 'a', 'b', 'c', 'a']);
  });

  it('contains every address of a host name, and addresses as they are', async () => {
    const list = new ServerList(parseServers('localhost:1', 1).servers, Math.random);
    const endpoints = await list.resolve({ host: 'localhost', port: 1 });
    expect(endpoints.map(({ ip }) => ip)).toContain('127.0.0.1');
    expect(await list.resolve({ host: '::1', port: 2 })).toEqual([{ host: '::1', port: 2, ip: '::1' }]);
  });
});

describe('options', () => {
  it('have defaults', () => {
    const settings = resolveOptions({ servers: 'a,b,c/root' });
    expect(settings).toMatchObject({ sessionTimeoutMs: 10_000, operationTimeoutMs: 30_000, readOnly: false });
    expect([settings.servers[0]?.port, settings.chroot.toServer('/x')]).toEqual([2181, '/root/x']);
    expect(resolveOptions({ servers: 'a', tls: {} }).servers[0]?.port).toBe(2281);
  });

  it.each([
    [{ servers: 'a', sessionTimeoutMs: 0 }, /sessionTimeoutMs/],
    [{ servers: 'a', operationTimeoutMs: Number.NaN }, /operationTimeoutMs/],
    [{ servers: 'a', chroot: 'relative' }, /chroot/],
    [{ servers: 'a', tls: { cert: 'x' } }, /tls\.key/],
    [{ servers: 'a:b' }, /servers/],
  ])('with invalid values are rejected: %j', (options, message) => {
    expect(() => connect(options)).toThrow(
      expect.objectContaining({ code: 'invalid-argument', message: expect.stringMatching(message) }),
    );
  });
});

describe('a chroot', () => {
  it('is prepended to every path, and removed from results', () => {
    const chroot = new Chroot('/a/b/');
    expect(['/', '/x', '/x/y'].map((path) => chroot.toServer(path))).toEqual(['/a/b', '/a/b/x', '/a/b/x/y']);
    expect(['/a/b', '/a/b/x', '/a/bc', '/a', '/'].map((path) => chroot.toClient(path))).toEqual([
      '/',
      '/x',
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('is optional', () => {
    for (const chroot of [new Chroot(''), new Chroot('/')]) {
      expect([chroot.toServer('/x'), chroot.toClient('/x'), chroot.toServer('/')]).toEqual(['/x', '/x', '/']);
    }
  });
});
