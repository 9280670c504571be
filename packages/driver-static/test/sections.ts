/** Sections of providers, and names that resolve without a network. */

import type { JsonObject } from '@nodepool/core';
import type { Resolve } from '../src/index.js';

export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6yzZzvPdqTzKBxIzTzYQ9xGnhRzU2bZcDbqyUBkK8D';

export const everyKey: JsonObject = {
  name: 'all',
  driver: 'static',
  'max-concurrency': 5,
  priority: 10,
  pools: [
    {
      name: 'main',
      'max-servers': 10,
      priority: 5,
      'node-attributes': { rack: 'r1' },
      nodes: [
        {
          name: 'a.test',
          labels: ['arm', 'large'],
          username: 'ci',
          timeout: 13,
          'connection-type': 'ssh',
          'connection-port': 22022,
          'ssh-port': 22,
          'host-key': [KEY],
          'host-key-checking': true,
          'python-path': '/usr/bin/python3',
          'shell-type': 'sh',
          'max-parallel-jobs': 2,
        },
      ],
    },
  ],
};

/** A provider with a machine of each connection type. */
export const rack: JsonObject = {
  name: 'rack',
  driver: 'static',
  pools: [
    {
      name: 'main',
      nodes: [
        { name: 'a.test', labels: ['arm', 'large'], 'host-key': `${KEY} root@a`, 'max-parallel-jobs': 2 },
        { name: 'a.test', labels: 'arm', username: 'other', 'host-key-checking': false, 'host-key': 'ssh-rsa X' },
        { name: 'win.test', labels: 'windows large', 'connection-type': 'winrm', 'host-key': 'ssh-rsa X' },
        { name: 'switch.test', labels: ['switch'], 'connection-type': 'network_cli', 'ssh-port': 830 },
        { name: '2001:db8::1', labels: ['six'] },
      ],
    },
  ],
};

export const resolve: Resolve = async (hostname) =>
  hostname.includes(':') ? { publicIpv6: hostname } : { publicIpv4: '192.0.2.1' };
