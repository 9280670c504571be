/** The thread of `BlockWatch`. It inspects the main thread through V8's inspector, without opening a port. */

import { Session, type Debugger } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';

export interface BlockWatchData {
  /** When the event loop of the main thread last turned (`process.hrtime.bigint`), stored every `beatMs`. */
  readonly lastBeat: BigInt64Array;
  readonly beatMs: number;
  readonly thresholdMs: number;
}

/** The stack that blocked the main thread, innermost frame first; empty if the block ended before it could be read. */
export interface BlockReport {
  readonly blockedMs: number;
  readonly frames: readonly { readonly name: string; readonly url: string; readonly line: number }[];
}

const { lastBeat, beatMs, thresholdMs } = workerData as BlockWatchData;
/** Interval (ms) between looks. */
const LOOK_MS = thresholdMs / 2;
/** Never changed, so that a wait for a change is a sleep, which needs no event loop. */
const NEVER = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

function sleep(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}

/** Returns how long after `from` the time `to` is (ms). */
function between(from: bigint, to: bigint): number {
  return Number(to - from) / 1e6;
}

/** Waits for a block and returns the beat before it. */
function nextBlock(): bigint {
  let lookedAt = process.hrtime.bigint();
  // If this thread was delayed itself, e.g. by a suspended machine, the main thread may not have been blocked before.
  let awakeSince = lookedAt;
  for (;;) {
    sleep(LOOK_MS);
    const now = process.hrtime.bigint();
    if (between(lookedAt, now) > LOOK_MS + thresholdMs) awakeSince = now;
    lookedAt = now;
    const beat = Atomics.load(lastBeat, 0);
    const since = beat > awakeSince ? beat : awakeSince;
    if (between(since, now) >= thresholdMs + beatMs) return beat;
  }
}

/** Pauses the main thread briefly and reads its stack. Resolves with an empty list if it is not blocked any more. */
function readStack(beat: bigint): Promise<BlockReport['frames']> {
  return new Promise((resolve) => {
    const session = new Session();
    session.connectToMainThread();
    const urls = new Map<string, string>();
    session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
    session.once('Debugger.paused', ({ params }) => {
      const isBlocked = Atomics.load(lastBeat, 0) === beat;
      const frames = isBlocked ? params.callFrames.map((frame) => describe(frame, urls)) : [];
      session.post('Debugger.resume', () => {
        session.disconnect();
        // Afterwards this thread sleeps without an event loop.
        resolve(frames);
      });
    });
    session.post('Debugger.enable');
    session.post('Debugger.pause');
  });
}

function describe(frame: Debugger.CallFrame, urls: ReadonlyMap<string, string>): BlockReport['frames'][number] {
  const { scriptId, lineNumber } = frame.location;
  return { name: frame.functionName, url: urls.get(scriptId) ?? frame.url, line: lineNumber + 1 };
}

async function watch(): Promise<never> {
  for (;;) {
    const beat = nextBlock();
    // Reading a stack may take as long as the block.
    const frames = await readStack(beat);
    while (Atomics.load(lastBeat, 0) === beat) sleep(beatMs);
    const blockedMs = between(beat, Atomics.load(lastBeat, 0)) - beatMs;
    if (frames.length > 0) parentPort?.postMessage({ blockedMs, frames } satisfies BlockReport);
  }
}

// A session of the inspector does not keep the thread alive.
// eslint-disable-next-line no-restricted-globals -- it measures real time, whatever clock the program has
setInterval(() => undefined, 2 ** 30);
void watch();
