/** Microversions of nova: the requested one, and the headers with the one used. */

import type { IncomingMessage } from 'node:http';
import { computeError } from './errors.js';

const MINIMUM = '2.1';
const VARY = 'OpenStack-API-Version, X-OpenStack-Nova-API-Version';

/** Returns the minor version, e.g. 47 for 2.47. Throws an API error if it is malformed or unsupported. */
export function microversionOf(headers: IncomingMessage['headers'], newest: string): number {
  const asked = askedFor(headers);
  if (asked === undefined) return minorOf(MINIMUM);
  if (asked === 'latest') return minorOf(newest);
  if (!/^[1-9]\d*\.\d+$/.test(asked)) {
    throw computeError(400, `API Version String ${asked} is of invalid format. Must be of format MajorNum.MinorNum.`);
  }
  const minor = minorOf(asked);
  if (!asked.startsWith('2.') || minor < minorOf(MINIMUM) || minor > minorOf(newest)) {
    throw computeError(
      406,
      `Version ${asked} is not supported by the API. Minimum is ${MINIMUM} and maximum is ${newest}.`,
      versionHeaders(asked),
    );
  }
  return minor;
}

export function versionHeaders(version: string): Record<string, string> {
  return { 'Openstack-Api-Version': `compute ${version}`, 'X-Openstack-Nova-Api-Version': version, Vary: VARY };
}

function askedFor(headers: IncomingMessage['headers']): string | undefined {
  const modern = headers['openstack-api-version'];
  const texts = (typeof modern === 'string' ? modern : '').split(',').map((text) => text.trim().split(/\s+/));
  const ours = texts.find(([service]) => service === 'compute')?.[1];
  const legacy = headers['x-openstack-nova-api-version'];
  return ours ?? (typeof legacy === 'string' ? legacy : undefined);
}

function minorOf(version: string): number {
  return Number(version.split('.')[1]);
}
