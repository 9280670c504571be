/** Tests of images that other programs make, with real files and a real web server. */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { silentLogger, systemClock, type ImageSourceConfig } from '@nodepool/core';
import { FetchedImages, type SourceJob } from '../src/index.js';

const CONTENT = Buffer.from('an image '.repeat(10_000));
const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

let folder: string;
let server: Server;
let base: string;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodepool-source-'));
  server = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  base = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

function job(source: Partial<ImageSourceConfig>, signal = new AbortController().signal): SourceJob {
  const build = { image: 'debian', id: 'b'.repeat(32) };
  return {
    build,
    source: { url: undefined, path: undefined, sha256: undefined, format: undefined, maxBytes: 2 ** 30, ...source },
    formats: ['raw'],
    output: join(folder, `debian-${build.id}`),
    timeoutMs: 60_000,
    signal,
    log: silentLogger,
  };
}

const images = (): FetchedImages => new FetchedImages(systemClock, folder);
const file = (): Promise<Buffer> => readFile(join(folder, `debian-${'b'.repeat(32)}.raw`));

describe('a download', () => {
  it('is verified, and leaves only the image', async () => {
    answer = (_request, response) => response.end(CONTENT);
    const identity = await images().fetch(job({ url: `${base}/debian.raw`, sha256: sha256(CONTENT) }));
    expect(identity).toBe(`sha256:${sha256(CONTENT)}`);
    expect(await file()).toEqual(CONTENT);
    expect(await readdir(folder)).toHaveLength(1);
  });

  it('is refused and deleted if its checksum differs', async () => {
    answer = (_request, response) => response.end(CONTENT.subarray(1));
    const fetching = images().fetch(job({ url: `${base}/debian.raw`, sha256: sha256(CONTENT) }));
    await expect(fetching).rejects.toMatchObject({ failure: 'source', message: expect.stringContaining('checksum') });
    expect(await readdir(folder)).toEqual([]);
  });

  it('is decompressed, after the checksum of the compressed file, which the server names', async () => {
    const zipped = gzipSync(CONTENT);
    answer = ({ url }, response) =>
      response.end(
        url === '/SHA256SUMS' ? `${'0'.repeat(64)}  other.raw.gz\n${sha256(zipped)} *debian.raw.gz\n` : zipped,
      );
    await images().fetch(job({ url: `${base}/debian.raw.gz`, sha256: `${base}/SHA256SUMS` }));
    expect(await file()).toEqual(CONTENT);
  });

  it('continues where the connection broke', async () => {
    const large = Buffer.concat(Array.from({ length: 100 }, () => CONTENT));
    const starts: number[] = [];
    answer = ({ headers: { range, 'if-range': validator } }, response) => {
      starts.push(range === undefined ? 0 : Number(range.slice('bytes='.length, -1)));
      response.setHeader('etag', '"one"');
      if (range === undefined || validator !== '"one"') {
        response.setHeader('content-length', large.length);
        response.write(large.subarray(0, large.length / 2), () => response.destroy());
        return;
      }
      response.statusCode = 206;
      response.end(large.subarray(starts.at(-1)));
    };
    await images().fetch(job({ url: `${base}/debian.raw`, sha256: sha256(large) }));
    expect(sha256(await file())).toBe(sha256(large));
    expect(starts).toEqual([0, expect.any(Number)]);
    expect(starts[1]).toBeGreaterThan(0);
  });

  it('ends with its signal in the middle, even if fetch misses that', async () => {
    const { fetch } = globalThis;
    const missing = jest.spyOn(globalThis, 'fetch').mockImplementation((url, { signal: _, ...options } = {}) => {
      return fetch(url, options);
    });
    const stop = new AbortController();
    answer = (_request, response) => {
      response.write(CONTENT, () => stop.abort(new Error('stop')));
    };
    try {
      const fetching = images().fetch(job({ url: `${base}/debian.raw`, sha256: sha256(CONTENT) }, stop.signal));
      await expect(fetching).rejects.toThrow('stop');
    } finally {
      missing.mockRestore();
    }
  });

  it('continues after the death of the builder, and not with the part of another image', async () => {
    const part = join(folder, '.source-debian.part');
    const url = `${base}/debian.raw`;
    const ranges: (string | undefined)[] = [];
    answer = ({ headers: { range } }, response) => {
      ranges.push(range);
      response.statusCode = range === undefined ? 200 : 206;
      response.end(CONTENT.subarray(range === undefined ? 0 : 100));
    };
    const left = async (facts: object): Promise<void> => {
      await writeFile(part, CONTENT.subarray(0, 100));
      await writeFile(`${part}.json`, JSON.stringify(facts));
    };
    await left({ url, sha256: sha256(CONTENT), validator: '"one"' });
    await images().fetch(job({ url, sha256: sha256(CONTENT) }));
    expect(await file()).toEqual(CONTENT);
    await left({ url, sha256: 'another', validator: '"one"' });
    await images().fetch(job({ url, sha256: sha256(CONTENT) }));
    expect(await file()).toEqual(CONTENT);
    expect(ranges).toEqual(['bytes=100-', undefined]);
  });

  it('fails at once and leaves nothing if the disk is full', async () => {
    answer = (_request, response) => response.end(CONTENT);
    await symlink('/dev/full', join(folder, '.source-debian.part'));
    const fetching = images().fetch(job({ url: `${base}/debian.raw`, sha256: sha256(CONTENT) }));
    await expect(fetching).rejects.toMatchObject({
      failure: 'source',
      message: expect.stringContaining('disk is full'),
    });
    expect(await readdir(folder)).toEqual([]);
  });

  it.each([
    ['announced', true],
    ['not announced', false],
  ])('is refused and deleted if it is too large, and its size is %s', async (_what, isAnnounced) => {
    let requests = 0;
    answer = (_request, response) => {
      requests += 1;
      // In pieces without a length unless the length is known at the end of the answer.
      if (!isAnnounced) response.write(CONTENT.subarray(0, 10));
      response.end(isAnnounced ? CONTENT : CONTENT.subarray(10));
    };
    const fetching = images().fetch(
      job({ url: `${base}/debian.raw`, sha256: sha256(CONTENT), maxBytes: CONTENT.length - 1 }),
    );
    await expect(fetching).rejects.toMatchObject({ failure: 'source', message: expect.stringContaining('max-size') });
    expect(requests).toBe(1);
    expect(await readdir(folder)).toEqual([]);
  });

  it('is refused if the disk has no space for it, before any of it is stored', async () => {
    answer = (_request, response) => {
      response.setHeader('content-length', 2 ** 60);
      response.write(CONTENT);
    };
    const fetching = images().fetch(job({ url: `${base}/debian.raw`, sha256: sha256(CONTENT), maxBytes: Infinity }));
    await expect(fetching).rejects.toMatchObject({ failure: 'space', message: expect.stringContaining('to spare') });
    expect(await readdir(folder)).toEqual([]);
  });

  it.each(['gz', 'xz'])('is refused if it is small, but the %s in it is not', async (compression) => {
    const zeros = Buffer.alloc(10 << 20);
    const packed = compression === 'gz' ? gzipSync(zeros) : spawnSync('xz', ['-c'], { input: zeros }).stdout;
    answer = (_request, response) => response.end(packed);
    const fetching = images().fetch(
      job({ url: `${base}/debian.raw.${compression}`, sha256: sha256(packed), maxBytes: 1 << 20 }),
    );
    await expect(fetching).rejects.toMatchObject({ failure: 'source', message: expect.stringContaining('max-size') });
    expect((await readdir(folder)).filter((name) => name.endsWith('.image') || name.endsWith('.raw'))).toEqual([]);
  });

  it('fails at once if the server does not have the file', async () => {
    answer = (_request, response) => {
      response.statusCode = 404;
      response.end();
    };
    const fetching = images().fetch(job({ url: `${base}/debian.raw`, sha256: sha256(CONTENT) }));
    await expect(fetching).rejects.toMatchObject({ failure: 'source', message: expect.stringContaining('404') });
  });
});

describe('the temporary files of sources', () => {
  it('are those with exactly such names, and not folders, links or files of other programs', async () => {
    const own = ['.source-debian.part', '.source-debian.part.json', '.source-debian.image', '.source-a.b.image'];
    const others = ['source-debian.part', '.source-debian.part.old', '.source-debian', 'x.source-debian.image'];
    for (const name of [...own, ...others]) await writeFile(join(folder, name), 'x');
    await mkdir(join(folder, '.source-folder.part'));
    await symlink(join(folder, 'source-debian.part'), join(folder, '.source-link.part'));
    const left = await images().leftovers();
    expect(left.map(({ path }) => path.slice(folder.length + 1)).sort()).toEqual([...own].sort());
    expect(left.filter(({ isResumable }) => !isResumable).map(({ image }) => image)).toEqual(
      expect.arrayContaining(['debian', 'a.b']),
    );
    for (const each of left) await images().remove(each);
    expect((await readdir(folder)).sort()).toEqual([...others, '.source-folder.part', '.source-link.part'].sort());
  });
});

describe('a local file', () => {
  it('is refused if it is too large', async () => {
    const path = join(folder, 'image.raw');
    await writeFile(path, CONTENT);
    const fetching = images().fetch(job({ path, maxBytes: 100 }));
    await expect(fetching).rejects.toMatchObject({ failure: 'source', message: expect.stringContaining('max-size') });
  });

  it('has another identity once another file is renamed to its path', async () => {
    const path = join(folder, 'image.raw');
    const source = job({ path }).source;
    expect(await images().identity(source)).toBeUndefined();
    await writeFile(path, CONTENT);
    const first = await images().identity(source);
    expect(await images().fetch(job({ path }))).toBe(first);
    expect(await file()).toEqual(CONTENT);
    await writeFile(`${path}.new`, 'another');
    await rename(`${path}.new`, path);
    expect(await images().identity(source)).not.toBe(first);
    expect(await file()).toEqual(CONTENT);
  });

  it('keeps its contents if its path is a symbolic link to a file that is deleted later', async () => {
    const releases = join(folder, 'releases');
    await mkdir(releases);
    await writeFile(join(releases, 'one.raw'), CONTENT);
    await symlink('one.raw', join(releases, 'latest.raw'));
    await images().fetch(job({ path: join(releases, 'latest.raw') }));
    await unlink(join(releases, 'one.raw'));
    expect(await file()).toEqual(CONTENT);
  });

  const tool = spawnSync('qemu-img', ['--version']).status === 0 ? it : it.skip;
  tool('is refused if its contents are in other files too, which a conversion would copy', async () => {
    const [path, secret] = [join(folder, 'image.qcow2'), join(folder, 'secret')];
    await writeFile(secret, CONTENT);
    spawnSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', secret, '-F', 'raw', path]);
    const fetching = images().fetch(job({ path }));
    await expect(fetching).rejects.toMatchObject({ failure: 'source', message: expect.stringMatching(/other files/) });
    spawnSync('qemu-img', ['create', '-q', '-f', 'qcow2', path, '1M']);
    await images().fetch(job({ path }));
    expect(await file()).toHaveLength(1 << 20);
  });

  it('is refused if its checksum differs', async () => {
    const path = join(folder, 'image.raw');
    await writeFile(path, CONTENT);
    await expect(images().fetch(job({ path, sha256: '0'.repeat(64) }))).rejects.toMatchObject({ failure: 'source' });
    expect(await readFile(path)).toEqual(CONTENT);
  });
});
