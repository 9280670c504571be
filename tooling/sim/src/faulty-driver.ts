/** A defective driver: it throws instead of rejecting, hangs, and returns invalid values. */

import type { Driver, Instance, LaunchedInstance, NodeRequestHandler, Provider, RandomSource } from '@nodepool/core';
import { overlay } from '@nodepool/simulated-process';

/** Kinds and probability of defects; they can change during a run. */
export interface DriverFaults {
  mode: 'none' | 'throws' | 'hangs' | 'nonsense';
  /** Probability per call, 0 to 1. */
  rate: number;
  readonly random: RandomSource;
}

/** Values that do not conform to their declared type. */
const MADE_UP_INSTANCES = JSON.parse('[{"tags": {}}, {"tags": {}}]') as readonly Instance[];
const MADE_UP_LAUNCH = JSON.parse('{"externalId": {"made": ["up"]}}') as LaunchedInstance;

/** Returns a driver that behaves like `driver` except for the defects in `faults`. */
export function faultyDriver(driver: Driver, faults: DriverFaults): Driver {
  return overlay(driver, { getProvider: (config) => faultyProvider(driver.getProvider(config), faults) });
}

function faultyProvider(provider: Provider, faults: DriverFaults): Provider {
  const call = caller(faults);
  return overlay(provider, {
    // A provider that never starts, or falsely reports that it did, would serve nothing at all.
    start: (context) => call(() => provider.start(context), undefined, ['hangs', 'nonsense']),
    join: () => call(() => provider.join(), undefined),
    getRequestHandler: (pool, request) => {
      if (strikes(faults) && faults.mode === 'throws') throw new Error('the driver has a defect');
      return faultyHandler(provider.getRequestHandler(pool, request), faults);
    },
    cleanupNode: (cleanup) => call(() => provider.cleanupNode(cleanup), undefined),
    waitForNodeCleanup: (nodeId) => call(() => provider.waitForNodeCleanup(nodeId), undefined, ['nonsense']),
    cleanupLeakedResources: (round, context) => call(() => provider.cleanupLeakedResources(round, context), undefined),
    listNodes: (context) => call(() => provider.listNodes(context), MADE_UP_INSTANCES),
  });
}

function faultyHandler(handler: NodeRequestHandler, faults: DriverFaults): NodeRequestHandler {
  const call = caller(faults);
  return overlay(handler, {
    launch: (launch) => call(() => handler.launch(launch), MADE_UP_LAUNCH),
  });
}

type Call = <T>(ask: () => Promise<T>, nonsense: T, without?: readonly DriverFaults['mode'][]) => Promise<T>;

/** `without` lists defects that nothing could detect. */
function caller(faults: DriverFaults): Call {
  return (ask, nonsense, without = []) => {
    if (!strikes(faults) || without.includes(faults.mode)) return ask();
    if (faults.mode === 'throws') throw new Error('the driver has a defect');
    return faults.mode === 'hangs' ? new Promise(() => undefined) : Promise.resolve(nonsense);
  };
}

function strikes({ mode, rate, random }: DriverFaults): boolean {
  return mode !== 'none' && random.next() < rate;
}
