/** Tests of reading the first packets of an SSH server. */

import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { parseServerHello } from '../../src/launch/scan/server-hello.js';

function list(text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, Buffer.from(text)]);
}

function packet(payload: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(payload.length + 5);
  head.writeUInt8(4, 4);
  return Buffer.concat([head, payload, Buffer.alloc(4)]);
}

const kexInit = packet(
  Buffer.concat([
    Buffer.from([20]),
    Buffer.alloc(16),
    list('curve25519-sha256'),
    list('ssh-ed25519,rsa-sha2-512'),
    list(''),
  ]),
);
const ignored = packet(Buffer.concat([Buffer.from([2]), list('chaff')]));

describe('the first messages of a server', () => {
  it.each([
    ['with a bare identification', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['with lines before it', 'Welcome.\r\nAll is logged.\r\nSSH-2.0-x comment\r\n'],
    ['with a line feed only', 'SSH-1.99-Cisco-1.25\n'],
  ])('list its host key algorithms, %s', (_how, identification) => {
    const hello = Buffer.concat([Buffer.from(identification), ignored, kexInit]);
    expect(parseServerHello(hello)).toEqual(['ssh-ed25519', 'rsa-sha2-512']);
  });

  it('are incomplete before the last byte', () => {
    const hello = Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), kexInit]);
    for (let length = 0; length < hello.length; length += 1) {
      expect(parseServerHello(hello.subarray(0, length))).toBeUndefined();
    }
  });

  it('are rejected when they end the connection or are truncated', () => {
    const identification = Buffer.from('SSH-2.0-x\r\n');
    const disconnect = packet(Buffer.concat([Buffer.from([1]), Buffer.alloc(8)]));
    expect(() => parseServerHello(Buffer.concat([identification, disconnect]))).toThrow('message 1');
    const short = packet(Buffer.concat([Buffer.from([20]), Buffer.alloc(16), list('x').subarray(0, 4)]));
    expect(() => parseServerHello(Buffer.concat([identification, short]))).toThrow('cut off');
  });

  it('never cause anything but a typed error for random content (seed 11)', () => {
    const random = seededRandom(11);
    const good = Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), kexInit]);
    for (let round = 0; round < 5000; round += 1) {
      const broken = Buffer.from(good);
      for (let hits = 1 + random.next() * 4; hits > 0; hits -= 1) {
        broken[Math.floor(random.next() * broken.length)] = Math.floor(random.next() * 256);
      }
      try {
        const algorithms = parseServerHello(broken);
        if (algorithms !== undefined) expect(algorithms.join(',').length).toBeLessThan(broken.length);
      } catch (error) {
        expect(String(error)).toMatch(/^Error: the server /);
      }
    }
  });
});
