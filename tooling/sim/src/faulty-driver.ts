/** A driver that goes wrong as code does that its author never tried: it throws where it should reject, hangs, and makes things up. */

import type { Driver, Instance, LaunchedInstance, NodeRequestHandler, Provider, RandomSource } from '@nodepool/core';
import { overlay } from '@nodepool/simulated-process';

/** How it goes wrong, and how often; changed while it runs. */
export interface DriverFaults {
  mode: 'none' | 'throws' | 'hangs' | 'nonsense';
  /** Chance of each call, 0 to 1. */
  rate: number;
  readonly random: RandomSource;
}

/** What no type check of a driver's author would have let through: it is called by its type, and is something else. */
const MADE_UP_INSTANCES = JSON.parse('[{"tags": {}}, {"tags": {}}]') as readonly Instance[];
const MADE_UP_LAUNCH = JSON.parse('{"externalId": {"made": ["up"]}}') as LaunchedInstance;

/** Does what `driver` does, unless `faults` say otherwise. */
export function faultyDriver(driver: Driver, faults: DriverFaults): Driver {
  return overlay(driver, { getProvider: (config) => faultyProvider(driver.getProvider(config), faults) });
}

function faultyProvider(provider: Provider, faults: DriverFaults): Provider {
  const call = caller(faults);
  return overlay(provider, {
    // One that never starts, or says that it did when it did not, serves nothing for ever: there is nothing to see.
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

/** `without`: what would be no fault but a lie that nobody could see through. */
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
