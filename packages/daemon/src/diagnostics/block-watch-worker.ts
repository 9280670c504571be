/** The thread of `BlockWatch`. It inspects the main thread through V8's inspector, without opening a port. */

import { Session, type Debugger } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';

export interface BlockWatchData {
  /** A counter that the main thread increments several times in `thresholdMs`. */
  readonly beats: Int32Array;
  readonly thresholdMs: number;
}

/** The stack that blocked the main thread, innermost frame first; empty if the block ended before it could be read. */
export interface BlockReport {
  readonly blockedMs: number;
  readonly frames: readonly { readonly name: string; readonly url: string; readonly line: number }[];
}

const { beats, thresholdMs } = workerData as BlockWatchData;
/** Interval (ms) between checks of the counter. */
const CHECK_INTERVAL_MS = thresholdMs / 4;

let lastBeat = Atomics.load(beats, 0);
let lastBeatAt = performance.now();
let checkedAt = lastBeatAt;
/** The stack of the present block. */
let frames: BlockReport['frames'] | undefined;

/** Pauses the main thread briefly and reads its stack. Resolves with an empty list if it is not blocked any more. */
function readStack(): Promise<BlockReport['frames']> {
  return new Promise((resolve) => {
    const session = new Session();
    session.connectToMainThread();
    const urls = new Map<string, string>();
    session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
    session.once('Debugger.paused', ({ params }) => {
      const isBlocked = Atomics.load(beats, 0) === lastBeat;
      session.post('Debugger.resume', () => session.disconnect());
      resolve(isBlocked ? params.callFrames.map((frame) => describe(frame, urls)) : []);
    });
    session.post('Debugger.enable');
    session.post('Debugger.pause');
  });
}

function describe(frame: Debugger.CallFrame, urls: ReadonlyMap<string, string>): BlockReport['frames'][number] {
  const { scriptId, lineNumber } = frame.location;
  return { name: frame.functionName, url: urls.get(scriptId) ?? frame.url, line: lineNumber + 1 };
}

async function check(): Promise<void> {
  const now = performance.now();
  // If this thread was delayed itself, e.g. by a suspended machine, the main thread may not have been blocked.
  const isDelayed = now - checkedAt > thresholdMs;
  checkedAt = now;
  const beat = Atomics.load(beats, 0);
  if (beat !== lastBeat) {
    const blockedMs = now - lastBeatAt;
    if (frames !== undefined && frames.length > 0) parentPort?.postMessage({ blockedMs, frames } satisfies BlockReport);
    frames = undefined;
    lastBeat = beat;
    lastBeatAt = now;
  } else if (isDelayed) {
    lastBeatAt = now;
  } else if (frames === undefined && now - lastBeatAt >= thresholdMs) {
    frames = await readStack();
    checkedAt = performance.now();
  }
}

/** Runs checks one after another, because reading a stack may take as long as the block. */
function schedule(): void {
  // eslint-disable-next-line no-restricted-globals -- it measures real time, whatever clock the program has
  setTimeout(() => void check().finally(schedule), CHECK_INTERVAL_MS);
}

// A session of the inspector does not keep the thread alive.
// eslint-disable-next-line no-restricted-globals -- the same
setInterval(() => undefined, 2 ** 30);
schedule();
