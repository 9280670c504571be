import { expect, test } from '@jest/globals';
import { EventLoopMonitor } from '@nodepool/daemon';

const BLOCK_MS = 600;

test('the monitor shows how late a block has made the timers, and when the loop last turned', async () => {
  let sampled: () => void = () => undefined;
  const sample = new Promise<void>((resolve) => (sampled = resolve));
  const monitor = new EventLoopMonitor(() => sampled());
  expect(monitor.read()).toEqual({ p50: 0, p99: 0, max: 0 });
  monitor.start();
  try {
    const started = Atomics.load(monitor.lastBeat, 0);
    expect(started).toBeGreaterThan(0n);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_MS);
    expect(Atomics.load(monitor.lastBeat, 0)).toBe(started);
    await sample;
    expect(Atomics.load(monitor.lastBeat, 0)).toBeGreaterThan(started);
    expect(monitor.read().max).toBeGreaterThan((BLOCK_MS - monitor.beatMs - 50) / 1000);
    monitor.reset();
    expect(monitor.read().max).toBe(0);
  } finally {
    monitor.stop();
  }
});
