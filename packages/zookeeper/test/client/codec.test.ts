/** The serialisation format, and the splitting of bytes into messages. */

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { FrameDecoder } from '../../src/client/frame-decoder.js';
import { JuteReader } from '../../src/client/jute-reader.js';
import { JuteWriter } from '../../src/client/jute-writer.js';
import { readStat } from '../../src/client/protocol.js';
import { message } from './fake-server.js';

const SEED = 20261;

function written(write: (writer: JuteWriter) => void): Buffer {
  const writer = new JuteWriter();
  write(writer);
  return writer.take();
}

describe('the serialisation format', () => {
  it('reads the values that it wrote', () => {
    const values = fc.tuple(
      fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.boolean(),
      fc.uint8Array({ maxLength: 40_000 }),
      fc.array(fc.string({ unit: 'grapheme' })),
    );
    fc.assert(
      fc.property(values, ([int, long, boolean, bytes, texts]) => {
        const reader = new JuteReader().reset(
          written((writer) => {
            writer.int(int);
            writer.long(long);
            writer.boolean(boolean);
            writer.buffer(bytes);
            writer.texts(texts);
          }),
        );
        expect([reader.int(), reader.long(), reader.boolean()]).toEqual([int, long, boolean]);
        expect(Buffer.compare(reader.buffer(), bytes)).toBe(0);
        expect([reader.texts(), reader.remaining]).toEqual([texts, 0]);
      }),
      { seed: SEED },
    );
  });

  it('reads the stat of a znode, fields in the order of `zookeeper.jute`', () => {
    const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
    const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    const stats = fc.record({
      czxid: long,
      mzxid: long,
      ctime: fc.maxSafeInteger(),
      mtime: fc.maxSafeInteger(),
      version: int,
      cversion: int,
      aversion: int,
      ephemeralOwner: long,
      dataLength: int,
      numChildren: int,
      pzxid: long,
    });
    fc.assert(
      fc.property(stats, (stat) => {
        const bytes = written((writer) => {
          for (const value of [stat.czxid, stat.mzxid, BigInt(stat.ctime), BigInt(stat.mtime)]) writer.long(value);
          for (const value of [stat.version, stat.cversion, stat.aversion]) writer.int(value);
          writer.long(stat.ephemeralOwner);
          for (const value of [stat.dataLength, stat.numChildren]) writer.int(value);
          writer.long(stat.pzxid);
        });
        const reader = new JuteReader().reset(bytes);
        expect([readStat(reader), reader.remaining]).toEqual([stat, 0]);
        const tooShort = new JuteReader().reset(bytes, 1);
        expect(() => readStat(tooShort)).toThrow(expect.objectContaining({ code: 'protocol' }));
      }),
      { seed: SEED },
    );
  });

  it.each([
    ['integers', 4, (writer: JuteWriter, value: number) => writer.int(value)],
    ['long integers', 8, (writer: JuteWriter, value: number) => writer.long(BigInt(value))],
    ['booleans', 1, (writer: JuteWriter, value: number) => writer.boolean(value % 2 === 1)],
    ['texts', 5, (writer: JuteWriter, value: number) => writer.text(String(value % 10))],
    ['byte strings', 5, (writer: JuteWriter, value: number) => writer.buffer(Buffer.of(value % 256))],
  ] as const)('keeps every message of %s as it was taken', (_what, size, write) => {
    const message = (writer: JuteWriter, count: number): Buffer => {
      writer.reset();
      writer.int(-1);
      writer.reset();
      writer.int(0);
      for (let value = 0; value < count; value++) write(writer, value);
      return writer.takeFrame();
    };
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.nat(100), fc.nat(9000)), { maxLength: 10 }), (counts) => {
        const writer = new JuteWriter();
        const messages = counts.map((count) => message(writer, count));
        counts.forEach((count, index) => {
          expect(messages[index]?.length).toBe(4 + count * size);
          expect(messages[index]?.equals(message(new JuteWriter(), count))).toBe(true);
        });
      }),
      { seed: SEED, numRuns: 30 },
    );
  });

  it('reads a missing byte string, text or vector as an empty one', () => {
    const reader = new JuteReader().reset(Buffer.alloc(12, 0xff));
    expect([reader.buffer().length, reader.text(), reader.texts()]).toEqual([0, '', []]);
  });

  it('returns bytes that are independent of the input buffer', () => {
    const bytes = written((writer) => writer.buffer(Buffer.from('abc')));
    const value = new JuteReader().reset(bytes).buffer();
    bytes.fill(0);
    expect(value.toString()).toBe('abc');
  });

  it('never reads beyond the end of a message', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.array(fc.nat(5), { maxLength: 20 }), (bytes, steps) => {
        // Readable texts around the message must not appear.
        const around = Buffer.concat([Buffer.alloc(64, 'a'), bytes, Buffer.alloc(64, 'z')]);
        const reader = new JuteReader().reset(around, 64, 64 + bytes.length);
        const reads = [
          () => reader.int(),
          () => reader.long(),
          () => reader.boolean(),
          () => reader.buffer(),
          () => reader.text(),
          () => reader.texts(),
        ];
        try {
          for (const step of steps) reads[step]?.();
        } catch (error) {
          expect(error).toMatchObject({ code: 'protocol' });
        }
        expect(reader.remaining).toBeGreaterThanOrEqual(0);
      }),
      { seed: SEED },
    );
  });

  it.each([
    ['negative', -2],
    ['larger than the message', 5],
    ['huge', 2 ** 31 - 1],
  ])('rejects a %s length', (_what, length) => {
    const bytes = written((writer) => {
      writer.int(length);
      writer.int(0);
    });
    for (const read of ['buffer', 'text', 'texts'] as const) {
      expect(() => new JuteReader().reset(bytes)[read]()).toThrow(expect.objectContaining({ code: 'protocol' }));
    }
  });
});

describe('messages', () => {
  it('are parsed from pieces of any size', () => {
    const bodies = fc.array(fc.uint8Array({ maxLength: 200_000 }), { maxLength: 6 });
    fc.assert(
      fc.property(bodies, fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1 }), (sent, pieceSizes) => {
        const received: Buffer[] = [];
        const decoder = new FrameDecoder(1_000_000, {
          onFrame: (bytes, start, end) => received.push(Buffer.from(bytes.subarray(start, end))),
        });
        const stream = Buffer.concat(sent.map((body) => Buffer.concat([header(body.length), body])));
        for (let offset = 0, piece = 0; offset < stream.length; piece++) {
          const size = pieceSizes[piece % pieceSizes.length]!;
          decoder.push(stream.subarray(offset, offset + size));
          offset += size;
        }
        expect(received.length).toBe(sent.length);
        for (const [index, body] of sent.entries()) expect(Buffer.compare(received[index]!, body)).toBe(0);
      }),
      { seed: SEED, numRuns: 60 },
    );
  });

  it('are parsed when they arrive byte by byte', () => {
    const received: string[] = [];
    const decoder = new FrameDecoder(100, {
      onFrame: (bytes, start, end) => received.push(bytes.toString('utf8', start, end)),
    });
    const stream = Buffer.concat(
      ['', 'one', 'another'].map((text) => Buffer.concat([header(text.length), Buffer.from(text)])),
    );
    for (const byte of stream) decoder.push(Buffer.of(byte));
    expect(received).toEqual(['', 'one', 'another']);
  });

  it.each([1, 5, 8, 20])('are not passed on after the decoder was stopped by one, with chunks of %d bytes', (size) => {
    const received: string[] = [];
    const decoder = new FrameDecoder(100, {
      onFrame: (bytes, start, end) => {
        received.push(bytes.toString('utf8', start, end));
        decoder.stop();
      },
    });
    const stream = Buffer.concat([header(1), Buffer.from('a'), header(1), Buffer.from('b')]);
    for (let offset = 0; offset < stream.length; offset += size) decoder.push(stream.subarray(offset, offset + size));
    expect(received).toEqual(['a']);
  });

  it('are not passed on if the decoder was stopped before their last byte', () => {
    const received: number[] = [];
    const decoder = new FrameDecoder(100, { onFrame: (_bytes, start, end) => received.push(end - start) });
    decoder.push(header(1));
    decoder.stop();
    decoder.push(Buffer.from('a'));
    expect(received).toEqual([]);
  });

  it.each([-1, 101, 2 ** 31 - 1])('of %d bytes are rejected when 100 are allowed', (length) => {
    const decoder = new FrameDecoder(100, { onFrame: () => undefined });
    expect(() => decoder.push(header(length))).toThrow(expect.objectContaining({ code: 'protocol' }));
    const inPieces = new FrameDecoder(100, { onFrame: () => undefined });
    inPieces.push(header(length).subarray(0, 3));
    expect(() => inPieces.push(header(length).subarray(3))).toThrow(expect.objectContaining({ code: 'protocol' }));
  });

  it('are written with a length prefix', () => {
    expect(message((writer) => writer.text('ab')).toString('hex')).toBe('00000006000000026162');
  });
});

function header(length: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(length);
  return bytes;
}
